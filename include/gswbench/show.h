// SPDX-License-Identifier: MIT
// Prints jobs, plans, predictions and sweeps on stdout, as text and as JSON.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/job.h"
#include "gswbench/json.h"
#include "gswbench/kernel_trace.h"
#include "gswbench/mlperf.h"
#include "gswbench/plan.h"
#include "gswbench/predict.h"
#include "gswbench/status.h"
#include "gswbench/sweep.h"

// Writes ", a proxy," to text if run.layers is set, ", a proxy (2 of 64 layers)," if [model] has fewer layers than its
// preset, else "". Returns text.
const char *show_proxy(const struct config *config, char *text, size_t bytes);
// Prints the row of a job's name, ranks and precision.
void show_job(const struct config *config, int64_t ranks);
// Prints a label and a text beside it, which is wrapped at 80 columns.
void show_row(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Prints a line, which is wrapped at 80 columns. margin: columns by which its continuation is indented.
void show_line(int margin, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Prints a line with an escaped path between two texts.
void show_path(const char *before, const char *path, const char *after);
// Prints the end of a line about exported weights: the names of programs that read weights of this model architecture.
void show_readers(const struct model_config *model);
// Prints a JSON value with 15 digits for reals, and frees it.
void show_json(json_t *value);
// Prints a JSON document with a list of rows. config: the configuration of the rows, for documents that have one.
struct show_document {
    const char *config;
    json_t     *rows;
};
void show_rows(const struct json_field *fields, const char *config, json_t *rows);
bool show_has_json(void);    // whether this process has printed a JSON document

// Print a job that gswbench check has verified: in detail, as a line of a table, and in a JSON document (show_check.c).
// show_check_row returns an element of the document's list of rows.
void    show_check_details(const struct proved_job *proved);
void    show_check_header(void);
void    show_check_line(const struct proved_job *proved);
json_t *show_check_row(const struct proved_job *proved);

// Print the plan of a rank: a summary, the pipeline schedule of the job, all ops, one per line, and the whole plan as
// JSON (show_plan.c).
status show_plan(const struct job *job, const struct plan *plan);
status show_schedule(const struct job *job);
void   show_plan_ops(const struct plan *plan);
void   show_plan_json(const struct job *job, const struct plan *plan);

// Print a predicted job: in detail, as a line of a table, and in a JSON document (show_predict.c). show_prediction_row
// returns an element of the document's list of rows. show_prediction_values prints the option values that the
// prediction uses, and the effect of each value's uncertainty on the step time.
void    show_prediction(const struct predict_row *row);
void    show_prediction_header(void);
void    show_prediction_line(const struct predict_row *row);
void    show_prediction_values(const struct config *config, const struct predict_range *range);
json_t *show_prediction_row(const struct predict_row *row);

// A finished sweep over the layouts of a job.
enum { SWEEP_OWN = -1 };    // layout number that means the job's own layout
struct shown_sweep {
    const struct job          *job;
    const struct sweep        *sweep;
    const char                *advice;           // what to do if no layout fits; "": some layout fits
    const char                *output;           // folder for predictions and sweep.html; NULL: none
    double                     range_percent;    // error range of the best layout; NaN: unknown
    const struct sweep_choice *own;              // the job's own layout; NULL: it cannot be predicted
};

// Returns the job with layout number `layout` of the sweep, or with its own layout (SWEEP_OWN).
struct job sweep_job(const struct job *own, const struct sweep *sweep, int64_t layout);

// Print a sweep as a table and as a JSON document (show_sweep.c). show_sweep_folder writes sweep.html, and a folder
// with the prediction of each of the best layouts and of the job's own layout. The best is written last, so that the
// link "latest" points to it.
void   show_sweep(const struct shown_sweep *shown);
void   show_sweep_json(const struct shown_sweep *shown);
status show_sweep_folder(const struct shown_sweep *shown);

// Print installed configurations and their rows, which are jobs, as lines and as JSON (show_configs.c).
struct shown_row {
    struct job     job;
    const int64_t *ranks;    // NULL: the row runs on any number of ranks
    char           layout[256];
    double         published_seconds;
    bool           is_supported;
};
struct shown_config {
    const char       *name;
    bool              is_atlas;
    struct shown_row *rows;
    int64_t           row_count;
};
status  show_config_file(const char *path);
void    show_describe_row(struct shown_row *row);
void    show_configs_heading(void);
void    show_config_row(const struct shown_row *row);
json_t *show_config_json(const struct shown_config *config);

// Print the errors of predictions against published jobs, by model, GPU and framework, and all rows as JSON
// (show_atlas.c).
struct atlas_effect {
    const char *section, *key;
    // step_percent: change of the step time if the value changes by spread_percent
    double value, spread_percent, step_percent;
};

struct atlas_row {
    char    config[128], variant[40], source[128];
    char    gpu[112], precision[8], software[112], layout[128];
    int64_t ranks;
    double  published_seconds, predicted_seconds, error_percent;
    double  range_percent;    // NaN: not requested
    // time of the model FLOPs at the peak, with the same FLOP convention in all rows
    double             ideal_seconds;
    struct text_buffer settings;    // options of the step that differ from their defaults, one per line
    // Memory of the rank with the largest use: published (0: unknown), predicted, error in percent. It is allocated or
    // reserved memory, as the publisher reports it.
    double published_memory, predicted_memory, memory_error;
    bool   memory_is_reserved;
    bool   fitted, has_experts;
    // Effect of the uncertainty of each value on the step time, if error ranges were requested.
    struct atlas_effect *effects;
    int64_t              effect_count;
};

struct atlas {
    struct atlas_row *rows;
    int64_t           count;
    double            pair_error;    // error of predicted changes in percent (PREDICTED_CHANGE_ERROR)
};
void show_atlas(const struct atlas *atlas);

// Print the runs of one MLPerf submission, and its model, GPUs and prediction if they are known (show_mlperf.c).
struct shown_mlperf {
    const struct mlperf_log  *runs;
    int64_t                   count, accelerators;                     // accelerators 0: unknown
    double                    step_seconds, spread;                    // medians over the runs
    double                    runs_percent;                            // (longest - shortest step) / median
    double                    flops;                                   // FLOPs of the model per sequence; NaN: unknown
    const struct predict_row *predicted;                               // NULL: none
    double                    samples_per_second, teraflops;           // teraflops per accelerator; NaN: unknown
    double                    predicted_percent, published_percent;    // excess over the measured step time; NaN: none
};
void show_mlperf(const struct shown_mlperf *shown);
void show_mlperf_json(const struct shown_mlperf *shown);

// Print the kernel times of a trace next to the predicted kernel times (show_trace.c).
struct shown_trace {
    const char                *path;
    const struct kernel_trace *trace;
    struct kernel_sums         traced;
    const struct kernel_sums  *predicted;    // NULL: none
};
void show_trace(const struct shown_trace *shown);
void show_trace_json(const struct shown_trace *shown);

// Returns the error that a program needs more memory than the device of [hardware] has (show_print.c).
status show_shortage(const struct config *config, const char *program, int64_t bytes, const char *remark);

// Field tables of the JSON documents.
extern const struct json_field show_check_fields[], show_plan_fields[], show_predict_fields[], show_sweep_fields[],
    show_configs_fields[], show_atlas_fields[], show_mlperf_fields[], show_trace_fields[];
