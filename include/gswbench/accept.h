// SPDX-License-Identifier: MIT
// Whether a machine is as good as a published or predicted row says: its devices and links alone, then the whole job.
#ifndef GSWBENCH_ACCEPT_H
#define GSWBENCH_ACCEPT_H

#include <stdbool.h>

#include "gswbench/benchmark.h"
#include "gswbench/preflight.h"
#include "gswbench/result.h"

struct accept {
    struct preflight         preflight;     // with the job; output is the folder for accept.json
    struct preflight_report  report;        // of rank 0
    struct result_acceptance acceptance;    // of rank 0: what is expected, then the verdict
    struct statistics        step;          // of the run; count is 0 where there was none
    char                     run_id[32], run_verdict[16];
};

// expectation.c: what the job should take on a machine with that device ("": none): as published for it, else as
// predicted for it, else nothing. Equal machines differ.
void accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device);

// accept_file.c: everything that decides, as text (its last lines) and as accept.json.
void                           accept_write_text(const struct accept *accept, FILE *file);
void                           accept_write_json(const struct accept *accept, FILE *file);
extern const struct json_field accept_fields[];

// The verdict, its reason and what to drain, of an accept.json. False: the document is none.
bool accept_read_json(struct accept *accept, const json_t *document);

// One rank, of a struct accept. The exit code follows from the verdict.
launch_rank accept_rank;

#endif
