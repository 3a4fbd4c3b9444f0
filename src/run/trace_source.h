// SPDX-License-Identifier: MIT
// Timing source of traced steps: CUPTI or CUDA events.
#ifndef GSWBENCH_RUN_TRACE_SOURCE_H
#define GSWBENCH_RUN_TRACE_SOURCE_H

#include "internal.h"

// Fails if the source requested by [trace] is unavailable. peers: [ranks]. Collective.
status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct environment_peer *peers);

// Runs the steps; with source auto, again with events if CUPTI fails. Fails if a requested source failed, with nothing
// traced. Collective.
struct trace_outcome {
    const char *timed_by;        // as in struct result_trace
    double      step_seconds;    // return value of the last run
    int64_t     lost_records;    // of this rank
};
typedef double trace_steps(struct steps *steps);
status trace_source_run(struct steps *steps, struct op_time *times, trace_steps *run, struct trace_outcome *outcome);

void trace_source_note(struct result *result, const char *id, const char *message);

#endif
