// SPDX-License-Identifier: MIT
// What CUPTI has noted down of a step, and what that says of its ops.
#ifndef GSWBENCH_CUDA_ACTIVITY_H
#define GSWBENCH_CUDA_ACTIVITY_H

#include "cupti_library.h"
#include "gswbench/backend_activity.h"

enum { ACTIVITY_BUFFERS = 64 };

// Full of records; the library lends out and takes back.
struct activity_buffers {
    int count;
    struct {
        uint8_t *data;
        size_t   bytes;
    } list[ACTIVITY_BUFFERS];
};

// One moment by both clocks.
struct activity_moment {
    double   seconds;
    uint64_t nanoseconds;    // of the library
};

struct activity_notes {
    const struct cupti     *cupti;
    struct activity_buffers buffers;
    uint32_t                step;          // whose records count: ids are of activity_id
    struct activity_moment  begin, end;    // of it
};

static inline uint64_t activity_id(uint32_t step, int32_t op)
{
    return (uint64_t)step << 32 | (uint32_t)op;
}

// Into spans[ops], and how many records of them have no times.
status activity_find_spans(const struct activity_notes *notes, struct backend_span *spans, int32_t ops, int64_t *lost);

#endif
