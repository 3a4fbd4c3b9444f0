// SPDX-License-Identifier: MIT
// Compares two results: whether they are comparable, whether the second is faster, and where the time differs.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/grid.h"
#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/statistics.h"
#include "gswbench/status.h"

// A setting, or a fact of the environment, that differs between the two results.
struct comparison_setting {
    char name[96], first[160], second[160];    // truncated to the buffers
    bool is_obstacle;                          // the difference makes the results incomparable
};

// Relative difference of the losses (or gradient norms) of two runs at the same step: abs(second - first) / abs(first).
// largest: maximum over the steps that both have; last: at the last such step. NaN: no such step, or unequal batches.
struct comparison_curve {
    double  largest, last;
    int64_t largest_step, last_step;
};

// Seconds of one part of the step in both runs. `second` is divided by comparison.work, so that both values are for the
// same number of tokens per device.
struct comparison_row {
    char   name[24];
    double first, second;
};

// Repeated runs of one side. spread: (maximum - minimum) / median of their median step times; NaN for one run.
struct comparison_repeats {
    int64_t runs;
    double  spread;
};

// One side of the comparison: a run, or a folder of repeated runs. result: the runs merged by comparison_join.
struct comparison_side {
    struct result            *runs;
    int64_t                   count;
    struct result            *result;
    struct comparison_repeats repeats;
};
status comparison_read_side(struct comparison_side *side, const char *path);
void   comparison_free_side(struct comparison_side *side);

struct comparison {
    const struct result       *first, *second;
    struct comparison_repeats  repeats[2];
    double                     work;    // tokens per device and step of the second result, divided by the first's
    struct statistics_change   step;    // change of the step time; the second run's is divided by `work`
    struct comparison_curve    loss, gradient_norm;
    struct comparison_setting *settings;
    int64_t                    setting_count;

    // The lists are empty unless both runs were traced. parts: the waterfall, which adds up to the median step time,
    // because its part `unexplained` includes the difference between median and traced step. families: seconds of
    // compute ops by family, such as GEMMs, including time that overlaps with other ops.
    struct comparison_row *parts, *families;
    int64_t                part_count, family_count;

    // Expected speed-up of GEMMs by the second precision: its peak FLOP/s over the first's; 1 for different GPU models.
    double pace;
};

// Both results must outlive the comparison. threshold: relative changes of the step time below it count as no change.
void comparison_init(struct comparison *comparison, const struct result *first, const struct result *second,
                     double threshold);
void comparison_free(struct comparison *comparison);

// Merges repeated runs of one configuration: returns the run with the middle median step time, with its confidence
// interval and noise widened to cover all runs, and the worst of their verdicts.
struct result *comparison_join(struct result *runs, int64_t count, struct comparison_repeats *repeats);

// Returns EXIT_COMPARE if the results are not comparable, with the settings that prevent it, else OK.
status comparison_check(const struct comparison *comparison);

// For CI. Returns EXIT_GATE if the second run is slower by more than threshold, EXIT_UNDECIDED if noise is too large to
// decide, else OK. threshold: the same as in comparison_init.
status comparison_gate(const struct comparison *comparison, double threshold);

// Names the second result by the settings of the job that differ from the first, in at most `bytes`.
const char *comparison_name(const struct comparison *comparison, char *text, size_t bytes);

// Write one comparison, or several with the same first result and then a table with a line per comparison.
void comparison_write_text(const struct comparison *list, int64_t count, FILE *file);
bool comparison_write_json(const struct comparison *list, int64_t count, FILE *file);
void comparison_write_html(const struct comparison *list, int64_t count, FILE *file);

extern const struct json_field comparison_fields[], comparisons_fields[];

// A table of results with scaling efficiency: one row per job and number of ranks. Repeated runs share a row.

// Identifies a row; runs with equal keys are repeats.
struct table_key {
    char    config[128], precision[64], layout[96], device[64];
    char    label[160];     // config; for a proxy model also its number of layers
    char    verdict[16];    // as in result_verdict_names
    char    variant[24];    // hash of the configuration, which is equal in repeats
    int64_t ranks, layers, sequence, global_batch;
};

// Repeated runs of one job on equal machines. Ratios: step_seconds over the published or predicted time; NaN: none.
struct table_row {
    struct table_key key;
    int64_t          runs;
    double           step_seconds;              // median over the runs of their median step time
    double           spread;                    // (maximum - minimum) / median of the runs' medians; NaN for one run
    double           tokens_per_second, mfu;    // at step_seconds
    double           efficiency;                // tokens/s per rank, relative to the job's row with the fewest ranks
    double           published_ratio, expected_ratio;
};

struct table {
    struct table_row *rows;    // sorted by job, then ranks
    int64_t           row_count;
    struct table_run *runs;
    int64_t           run_count;
};

// Adds a run; table_finish then computes the rows. Runs with different verdicts (VALID, DEGRADED) get different rows.
void table_add(struct table *table, const struct result *result);
void table_finish(struct table *table);
void table_free(struct table *table);

void table_write(const struct table *table, grid_writer *write, FILE *file);
void table_write_html(const struct table *table, FILE *file);

extern const struct json_field table_fields[];

// A history of runs: how the step time of each job changed from run to run, and which settings changed with it.

// One run. A job is a config, a number of ranks and a precision. The change is relative to the previous run of the job.
// If there is none, or it is not comparable, the change is NaN, and change_verdict says why.
struct history_row {
    char    config[128], precision[64], started[24], run_id[32], verdict[16];
    int64_t ranks;
    double  step_seconds, low, high;                      // median and its 95 % interval
    double  change, change_low, change_high;              // step time relative to the previous run, minus 1
    char    change_verdict[32], changed_settings[400];    // changed_settings "": no setting changed
};

struct history {
    bool                force;    // also compare runs that comparison_check refuses, such as DEGRADED ones
    struct result      *results;
    int64_t             result_count;
    struct history_row *rows;
    int64_t             row_count;
};

// Adds a result, which the history then owns. history_finish computes the rows, sorted by job and start time.
void history_add(struct history *history, struct result *result);
void history_finish(struct history *history);
void history_free(struct history *history);

void history_write(const struct history *history, grid_writer *write, FILE *file);
void history_write_html(const struct history *history, FILE *file);

extern const struct json_field history_fields[];
