// SPDX-License-Identifier: MIT
// By what the ops of traced steps are timed.
#ifndef GSWBENCH_RUN_TRACE_SOURCE_H
#define GSWBENCH_RUN_TRACE_SOURCE_H

#include "internal.h"

// Fails where [trace] asks for a source that is not to be had. peers: of all ranks. Collective.
status trace_source_check(const struct trace_config *config, struct backend *backend, struct comm *comm,
                          const struct place_peer *peers);

// Has the steps run, once more where a source turns out to be none, which the result then says. Fails where [trace]
// asks for a source that failed; then nothing was traced. Collective.
struct trace_outcome {
    const char *timed_by;        // as of struct result_trace
    double      step_seconds;    // what the last of them returned
    int64_t     lost_records;    // of this rank
};
typedef double trace_steps(struct steps *steps);
status trace_source_run(struct steps *steps, struct op_time *times, trace_steps *run, struct trace_outcome *outcome);

void trace_source_note(struct result *result, const char *id, const char *message);

#endif
