// SPDX-License-Identifier: MIT
// CUPTI activity records of a step, and the time spans of its ops.
#ifndef GSWBENCH_CUDA_ACTIVITY_H
#define GSWBENCH_CUDA_ACTIVITY_H

#include "cupti_library.h"
#include "gswbench/backend.h"

enum { ACTIVITY_BUFFERS = 64 };

// Buffers of records. CUPTI requests and returns them.
struct activity_buffers {
    int count;
    struct {
        uint8_t *data;
        size_t   bytes;
    } list[ACTIVITY_BUFFERS];
};

// One instant on both clocks.
struct activity_moment {
    double   seconds;
    uint64_t nanoseconds;    // CUPTI timestamp
};

struct activity_notes {
    const struct cupti     *cupti;
    struct activity_buffers buffers;
    uint32_t                step;          // current step; records of other steps are ignored (activity_id)
    struct activity_moment  begin, end;    // start and end of the step
};

static inline uint64_t activity_id(uint32_t step, int32_t op)
{
    return (uint64_t)step << 32 | (uint32_t)op;
}

// Fills spans[ops]; *lost counts the records without timestamps.
status activity_find_spans(const struct activity_notes *notes, struct backend_span *spans, int32_t ops, int64_t *lost);

#endif
