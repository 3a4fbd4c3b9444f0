// SPDX-License-Identifier: MIT
// Runs in the order of time: how the step time of each job changed from run to run, and what changed with it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"

// One run. A job is a config, a number of ranks and a precision. Without an earlier comparable run of the job the
// change is NaN, and change_verdict says why.
struct history_row {
    char    config[64], precision[64], started[24], run_id[32], verdict[16];
    int64_t ranks;
    double  step_seconds, low, high;                      // median and its 95 % interval
    double  change, change_low, change_high;              // step time relative to the earlier run, minus 1
    char    change_verdict[32], changed_settings[400];    // "": none
};

struct history {
    bool                force;    // compare runs that are not comparable, such as DEGRADED ones
    struct result     **results;
    int64_t             result_count;
    struct history_row *rows;
    int64_t             row_count;
};

// Takes the result over. history_finish then computes the rows, sorted by job and start.
void history_add(struct history *history, struct result *result);
void history_finish(struct history *history);
void history_free(struct history *history);

void history_write_text(const struct history *history, FILE *file);
void history_write_markdown(const struct history *history, FILE *file);
void history_write_csv(const struct history *history, FILE *file);
void history_write_html(const struct history *history, FILE *file);
void history_write_json(const struct history *history, FILE *file);

extern const struct json_field history_fields[];
