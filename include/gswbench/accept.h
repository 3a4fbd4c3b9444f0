// SPDX-License-Identifier: MIT
// Acceptance test of a machine against a published or predicted step time: devices and links first, then the job.
#ifndef GSWBENCH_ACCEPT_H
#define GSWBENCH_ACCEPT_H

#include <stdbool.h>

#include "gswbench/benchmark.h"
#include "gswbench/preflight.h"
#include "gswbench/result.h"

struct accept {
    struct preflight         preflight;     // with the job; output is the folder for accept.json
    struct preflight_report  report;        // on rank 0
    struct result_acceptance acceptance;    // on rank 0: expectation, then verdict
    struct statistics        step;          // of the run; count is 0 if no run took place
    char                     run_id[32], run_verdict[16];
};

// expectation.c: expected step time on that device ("": none): published, else predicted, else none. The tolerance
// includes the spread between equal machines.
void accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device);

// accept_file.c: the verdict as text, and with all its inputs as accept.json.
void                           accept_write_text(const struct accept *accept, FILE *file);
void                           accept_write_json(const struct accept *accept, FILE *file);
extern const struct json_field accept_fields[];

// Reads verdict, reason and drain list of an accept.json; false if it is none.
bool accept_read_json(struct accept *accept, const json_t *document);

// One rank; shared is a struct accept. The exit code follows from the verdict.
launch_rank accept_rank;

#endif
