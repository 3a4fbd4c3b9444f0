// SPDX-License-Identifier: MIT
// Shows jobs, plans, predictions and sweeps on stdout, as text and as JSON.
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

// show_print.c: writes ", a proxy (2 of 64 layers),", or "" for a whole model.
const char *show_proxy(const struct config *config, char *text, size_t bytes);
// Prints a line with an escaped path between two texts.
void show_path(const char *before, const char *path, const char *after);
// Ends a line about exported weights with the programs that read the model's architecture.
void show_readers(const struct model_config *model);
// Prints a JSON value with 15 digits for reals, and frees it.
void show_json(json_t *value);
bool show_has_json(void);    // whether this process has printed a document

// show_check.c: a proved job as paragraphs, as a line of a table, and as an element of the JSON list of rows.
void    show_check_details(const struct proved_job *proved);
void    show_check_header(void);
void    show_check_line(const struct proved_job *proved);
json_t *show_check_row(const struct proved_job *proved);
void    show_check_json(const char *config, json_t *rows);

// show_plan.c: summary of a rank's plan, its pipeline schedule, and all ops, one line each. show_plan_json.c streams
// the whole plan.
status      show_plan(const struct job *job, const struct plan *plan);
status      show_schedule(const struct job *job);
void        show_plan_ops(const struct plan *plan);
void        show_plan_json(const struct job *job, const struct plan *plan);
const char *show_access_name(int access);

// show_predict.c: a predicted row as paragraphs, as a line of a table, and as an element of the JSON list of rows; the
// values that the prediction uses, and the effect of each spread on the step.
void    show_prediction(const struct predict_row *row);
void    show_prediction_header(void);
void    show_prediction_line(const struct predict_row *row);
void    show_prediction_values(const struct config *config, const struct predict_range *range);
json_t *show_prediction_row(const struct predict_row *row);
void    show_predictions_json(json_t *list);

// Absolute errors against published step times, in percent. If values of the cost model were fitted to a row, its error
// shows only the quality of the fit; other rows show the quality of predictions. show_add_error ignores NaN.
struct prediction_errors {
    int    rows;
    double sum, maximum;
};
void show_add_error(struct prediction_errors *errors, double percent);
void show_errors(const struct prediction_errors *errors, const char *which);

// A finished sweep of a job's layouts.
enum { SWEEP_OWN = -1 };    // the job's own layout
struct shown_sweep {
    const struct job          *job;
    const struct sweep        *sweep;
    const char                *advice;           // "": some layout fits
    const char                *output;           // folder for predictions and sweep.html; NULL: none
    double                     range_percent;    // error range of the best; NaN: unknown
    const struct sweep_choice *own;              // NULL: cannot be predicted
};

// Returns the job with a layout of the sweep, or its own (SWEEP_OWN).
struct job sweep_job(const struct job *own, const struct sweep *sweep, int64_t layout);

// Returns the number of layouts whose difference from the best is within the prediction error, the best included.
int show_sweep_equals(const struct shown_sweep *shown);

// show_sweep.c: the table and the JSON document. show_sweep_folder writes the predictions of the best layouts and of
// the job's own layout, each to its folder, and sweep.html. The best is written last, so that "latest" points to it.
void   show_sweep(const struct shown_sweep *shown);
void   show_sweep_json(const struct shown_sweep *shown);
status show_sweep_folder(const struct shown_sweep *shown);

// show_configs.c: a row of an installed configuration as a line, and configurations with their rows as JSON.
struct shown_row {
    struct job     job;
    const int64_t *ranks;    // NULL: any
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
status  show_config_file(const char *name);
void    show_describe_row(struct shown_row *row);
void    show_config_row(const struct job *job);
json_t *show_config_json(const struct shown_config *config);
void    show_configs_json(json_t *list);

// show_atlas.c: published rows with their predictions: errors by what rows share, and all rows as JSON.
struct atlas_effect {
    const char *section, *key;
    double      value, spread_percent, step_percent;    // step_percent: change of the step for one spread
};

struct atlas_row {
    char               config[128], variant[40], source[128];
    char               gpu[112], precision[8], software[112], layout[128];
    int64_t            ranks;
    double             published_seconds, predicted_seconds, error_percent;
    double             range_percent;    // NaN: not requested
    double             ideal_seconds;    // model FLOPs, by one convention for all rows, at the peak
    struct text_buffer settings;         // options of the step that differ from their defaults, one a line
    // Memory of the rank that holds most, counted as the publisher counts it: published (0: unknown), predicted, error
    // in percent.
    double published_memory, predicted_memory, memory_error;
    bool   memory_is_reserved;
    bool   fitted, has_experts;
    // Effect of each value on the step, if ranges were requested. effects_shown is the pointer that JSON needs.
    struct atlas_effect effects[PREDICT_EFFECTS_MAX], *effects_shown;
    int64_t             effect_count;
};

struct atlas {
    struct atlas_row *rows;
    int64_t           count;
    double            pair_error;    // PREDICTED_CHANGE_ERROR
};
void show_atlas(const struct atlas *atlas);
void show_atlas_json(const struct atlas *atlas);

// show_mlperf.c: runs of one submission, and their model, GPUs and prediction where these are known.
struct shown_mlperf {
    const struct mlperf_log  *runs;
    int64_t                   count, accelerators;                     // accelerators 0: unknown
    double                    step_seconds, spread;                    // medians over the runs
    double                    runs_percent;                            // (longest - shortest step) / median
    double                    flops;                                   // of the model per sequence; NaN: unknown
    const struct predict_row *predicted;                               // NULL: none
    double                    samples_per_second, teraflops;           // teraflops per accelerator; NaN: unknown
    double                    predicted_percent, published_percent;    // above the measured step; NaN: none
};
void show_mlperf(const struct shown_mlperf *shown);
void show_mlperf_json(const struct shown_mlperf *shown);
// FLOPs of the model per sequence of this length, in this convention.
double show_mlperf_flops(const struct config *config, int64_t sequence);

// show_trace.c: kernel times of a trace and of a prediction.
struct shown_trace {
    const char                *path;
    const struct kernel_trace *trace;
    struct kernel_sums         traced;
    const struct kernel_sums  *predicted;    // NULL: none
};
void show_trace(const struct shown_trace *shown);
void show_trace_json(const struct shown_trace *shown);

// show_print.c: the error of a program that needs more memory than the device of [hardware] has.
status show_shortage(const struct config *config, const char *program, int64_t bytes, const char *remark);

// Field tables of the JSON documents.
extern const struct json_field show_check_fields[], show_plan_fields[], show_predict_fields[], show_sweep_fields[],
    show_configs_fields[], show_atlas_fields[], show_mlperf_fields[], show_trace_fields[];
