// SPDX-License-Identifier: MIT
// Many results as one table: repeats in one row, and how a job scales over its rows.
#ifndef GSWBENCH_TABLE_H
#define GSWBENCH_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"

// What tells rows apart, and what runs are repeats of.
struct table_key {
    char    config[64], precision[64], layout[96], device[64];
    char    verdict[16];    // as in result_verdict_names
    char    variant[24];    // of a prediction, which no other setting repeats: its configuration's hash
    int64_t ranks, layers, sequence, global_batch;
};

// Runs of one job on machines alike. Ratios are NaN where there is nothing to set it against.
struct table_row {
    struct table_key key;
    int64_t          runs;
    double           step_seconds;              // median of the runs' medians
    double           spread;                    // of these, from the least to the most, over it; NaN: one run
    double           tokens_per_second, mfu;    // of it
    double           efficiency;                // tokens a rank, over those of the row of the job that has fewest ranks
    double           published_ratio, expected_ratio;
};

struct table {
    struct table_row *rows;    // by job and ranks
    int64_t           row_count;
    struct table_run *runs;
    int64_t           run_count;
};

// Adds a run; table_finish then makes the rows. Runs of one job with different verdicts are different rows.
void table_add(struct table *table, const struct result *result);
void table_finish(struct table *table);
void table_free(struct table *table);

void table_write_text(const struct table *table, FILE *file);
void table_write_markdown(const struct table *table, FILE *file);
void table_write_csv(const struct table *table, FILE *file);
void table_write_json(const struct table *table, FILE *file);

extern const struct json_field table_fields[];

#endif
