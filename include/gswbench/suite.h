// SPDX-License-Identifier: MIT
// A suite: a list of jobs (rows) that run one after the other in one allocation, after one preflight for all. Each row
// gets a verdict as from `gswbench accept`: the step time of the row's run decides if the machine is accepted.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/job.h"
#include "gswbench/preflight.h"

// One row: its job, its expected step time, and on rank 0 its outcome.
struct suite_row {
    char   name[64], config[128], layout[256], precision[8];
    char   problem[400];         // why the job cannot run here; "": it can
    double published_seconds;    // NaN: none
    double minutes;              // estimated duration; NaN: unknown
    // dollars per million tokens at the measured step time, or before the run at the expected one; NaN: unknown
    double token_dollars;
    char   basis[16];    // source of the expected time: "published", "predicted" or "nothing"
    double expected_seconds, percent;

    int64_t verdict;    // enum acceptance; ACCEPTANCE_NONE: did not run
    char    reason[600], drain[1024], run_id[32], run_verdict[16];
    // published_percent: published step time in percent of the measured one; NaN: not compared with a published one
    double            step_seconds, low, high, published_percent;
    bool              is_earlier;    // the outcome is from an earlier call of the suite
    struct benchmark *benchmark;     // the job; NULL if it cannot run
};

struct suite {
    char              name[128], about[400], path[1024];
    int64_t           ranks;
    struct suite_row *rows;
    int64_t           row_count;
    double            minutes;    // estimated duration of the preflight and all rows
    const char       *output;     // folder of the suite's files; each row has a folder in it
    double            seconds;    // time limit of the preflight
    const char       *sign_key;
    bool              json;

    // enum acceptance: refused if the preflight found outliers or a row is refused, accepted if all rows are accepted
    int64_t verdict;
    char    drain[1024];
    bool    is_stopped;    // a signal or the time limit ended the suite before the last row
};

// suite_read.c: reads the rows of a suite. `name` is an installed suite or a file. `selection` has the rank count of
// all rows, and overrides (--set) that win over the settings of a row. If a row cannot run, its `problem` says why.
// suite_free frees the suite.
status suite_read(struct suite *suite, const char *name, const struct job_selection *selection);
void   suite_free(struct suite *suite);

// suite_show.c: prints the suite as text; suite_fields describes its JSON.
void                           suite_write_text(const struct suite *suite, FILE *file);
extern const struct json_field suite_fields[];

// suite.c: runs one rank of a suite. shared points to a struct suite *; rank 0 stores the outcomes there. A row is not
// repeated if the output folder has its files. The exit code follows from the verdict.
launch_rank suite_rank;
