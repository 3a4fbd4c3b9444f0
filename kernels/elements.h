// SPDX-License-Identifier: MIT
// Casts, sums of squares and gradient clipping on flat arrays. Memory-bound: casts read and write each element once
// (accumulating casts read both), sums read it once.
#ifndef GSWBENCH_KERNELS_ELEMENTS_H
#define GSWBENCH_KERNELS_ELEMENTS_H

#include "gswbench/format.h"
#include "launch.h"

struct cast_args {
    const void *in;     // [elements]
    void       *out;    // [elements]
    int64_t     elements;
    bool        accumulates;
    enum format from, to;
};
KERNEL_FUNCTION int kernel_cast(const struct cast_args *args, const struct kernel_target *target);

struct square_sum_args {
    const void *in;         // [elements]
    float      *out;        // [1]
    double     *scratch;    // square_sum_scratch_bytes
    int64_t     elements;
    enum format type;
    bool        accumulates;    // adds to out
};
KERNEL_FUNCTION int kernel_square_sum(const struct square_sum_args *args, const struct kernel_target *target);

// One double per block.
GSWBENCH_INLINE int64_t square_sum_scratch_bytes(int64_t elements, const struct kernel_target *target)
{
    int64_t packets = launch_groups(elements, LAUNCH_WIDTH);
    return launch_items(packets, target->multiprocessors).blocks * (int64_t)sizeof(double);
}

struct clip_args {
    const float *squares;    // [count]
    float       *norm;       // [1]: square root of the sum of squares
    float       *factor;     // [1]: factor that limits the norm, or 1
    int64_t      count;
    float        limit;    // 0: no limit
};
KERNEL_FUNCTION int kernel_clip(const struct clip_args *args, const struct kernel_target *target);

// out = factor * sum of in, or += if accumulates.
struct scaled_sum_args {
    const float *in;     // [elements]
    float       *out;    // [1]
    int64_t      elements;
    float        factor;
    bool         accumulates;
};
KERNEL_FUNCTION int kernel_scaled_sum(const struct scaled_sum_args *args, const struct kernel_target *target);

#endif
