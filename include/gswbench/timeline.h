// SPDX-License-Identifier: MIT
// Ops in time as a file that Perfetto opens: a process for each rank, a thread for each of its lanes.
#ifndef GSWBENCH_TIMELINE_H
#define GSWBENCH_TIMELINE_H

#include <stdbool.h>
#include <stdio.h>

#include "gswbench/plan.h"

// Which ranks a timeline shows: arrows lead from sends to receives of these.
struct timeline_ranks {
    bool (*shows)(const void *state, int64_t rank);
    const void *state;
};

// Where the times are from.
struct timeline_source {
    const char *timed_by;        // as of struct result_trace, or "prediction"
    int64_t     lost_records;    // of ops, which then may have taken longer
};

// A file is begin, any ranks, and end; the caller checks the stream.
void timeline_begin(FILE *file);
void timeline_write_rank(const struct plan *plan, const struct op_time *times, const struct timeline_ranks *ranks,
                         bool is_first, FILE *file);
void timeline_end(const struct timeline_source *source, FILE *file);

#endif
