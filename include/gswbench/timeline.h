// SPDX-License-Identifier: MIT
// Writes op times as a trace for Perfetto: a process per rank, a thread per stream.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "gswbench/plan.h"

// Ranks in the trace. Arrows connect sends with receives between them.
struct timeline_ranks {
    bool (*shows)(const void *state, int64_t rank);
    const void *state;
};

// Source of the times.
struct timeline_source {
    const char *timed_by;        // as in struct result_trace, or "prediction"
    int64_t     lost_records;    // dropped activity records; their ops may have taken longer
};

// A file consists of timeline_begin, any number of ranks, and timeline_end. The caller checks the stream for errors.
void timeline_begin(FILE *file);
void timeline_write_rank(const struct plan *plan, const struct op_time *times, const struct timeline_ranks *ranks,
                         bool is_first, FILE *file);
void timeline_end(const struct timeline_source *source, FILE *file);
