// SPDX-License-Identifier: MIT
// A suite: jobs that one allocation runs one after the other, each accepted or refused, after one preflight.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/job.h"
#include "gswbench/preflight.h"

// A row: its expectations, and its outcome on rank 0.
struct suite_row {
    char   name[64], config[128], layout[256], precision[8];
    char   problem[400];         // why it cannot run here; "": it can
    double published_seconds;    // NaN: none
    double minutes;              // estimate; NaN: unknown
    double token_dollars;    // for a million tokens, at the measured step, before it at the expected one; NaN: unknown
    char   basis[16];        // of the expected time, as in struct result_acceptance
    double expected_seconds, percent;

    int64_t           verdict;    // enum acceptance; none: did not run
    char              reason[600], drain[1024], run_id[32], run_verdict[16];
    double            step_seconds, low, high, published_percent;    // published step in percent of the measured one
    bool              is_earlier;                                    // an earlier call ran it
    struct benchmark *benchmark;                                     // its job; NULL if it cannot run
};

struct suite {
    char              name[128], about[400], path[1024];
    int64_t           ranks;
    struct suite_row *rows;
    int64_t           row_count;
    double            minutes;    // all rows and the preflight
    const char       *output;     // folder of its files, with a folder for each row
    double            seconds;    // time limit of the preflight
    const char       *sign_key;
    bool              json;

    int64_t verdict;    // enum acceptance: refused if one row is, accepted if all are
    char    drain[1024];
    bool    is_stopped;    // by a signal or the time limit, before its last row
};

// suite_read.c: reads the rows of a suite, an installed one or a file, at the selected number of ranks; overrides of
// the selection apply to every row. problem says why a row cannot run. suite_free frees the suite.
status suite_read(struct suite *suite, const char *name, const struct job_selection *selection);
void   suite_free(struct suite *suite);

// suite_show.c: as text, as a page, and as JSON. report NULL: no preflight took place.
void suite_write_text(const struct suite *suite, FILE *file);
void suite_write_html(const struct suite *suite, const struct preflight_report *report, FILE *file);
extern const struct json_field suite_fields[];

// suite.c: one rank of a suite; shared points to a struct suite *, whose outcomes rank 0 sets. Rows whose files are in
// the output folder are not repeated. The exit code follows from the verdict.
launch_rank suite_rank;
