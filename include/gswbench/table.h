// SPDX-License-Identifier: MIT
// A table of results: one row per job and number of ranks, with repeated runs merged, and scaling efficiency.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"

// Identifies a row; runs with equal keys are repeats.
struct table_key {
    char    config[64], precision[64], layout[96], device[64];
    char    verdict[16];    // as in result_verdict_names
    char    variant[24];    // hash of the configuration: repeats have the same, as in a comparison
    int64_t ranks, layers, sequence, global_batch;
};

// Repeated runs of one job on equal machines. Ratios are NaN without a reference.
struct table_row {
    struct table_key key;
    int64_t          runs;
    double           step_seconds;              // median over the runs of their median step time
    double           spread;                    // (maximum - minimum) / median of those step times; NaN for one run
    double           tokens_per_second, mfu;    // at step_seconds
    double           efficiency;                // tokens/s per rank, relative to the fewest ranks of the job
    double           published_ratio, expected_ratio;
};

struct table {
    struct table_row *rows;    // sorted by job, then ranks
    int64_t           row_count;
    struct table_run *runs;
    int64_t           run_count;
};

// Adds a run; table_finish then computes the rows. Different verdicts make different rows.
void table_add(struct table *table, const struct result *result);
void table_finish(struct table *table);
void table_free(struct table *table);

void table_write_text(const struct table *table, FILE *file);
void table_write_markdown(const struct table *table, FILE *file);
void table_write_csv(const struct table *table, FILE *file);
void table_write_html(const struct table *table, FILE *file);
void table_write_json(const struct table *table, FILE *file);

extern const struct json_field table_fields[];
