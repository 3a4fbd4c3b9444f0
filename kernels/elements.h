// SPDX-License-Identifier: MIT
// Conversion of flat arrays, their sum of squares, and the factor that clips a gradient.
// Bound by memory: casts read and write each element once (accumulating ones read both), sums read it once.
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
    bool        accumulates;    // into out
};
KERNEL_FUNCTION int kernel_square_sum(const struct square_sum_args *args, const struct kernel_target *target);

// A double of each block.
GSWBENCH_INLINE int64_t square_sum_scratch_bytes(int64_t elements, const struct kernel_target *target)
{
    int64_t packets = launch_groups(elements, LAUNCH_WIDTH);
    return launch_items(packets, target->multiprocessors).blocks * (int64_t)sizeof(double);
}

struct clip_args {
    const float *squares;    // [count]
    float       *norm;       // [1]: square root of their sum
    float       *factor;     // [1]: what brings the norm to the limit, or 1
    int64_t      count;
    float        limit;    // 0: none
};
KERNEL_FUNCTION int kernel_clip(const struct clip_args *args, const struct kernel_target *target);

// out = factor * sum of in, added to out where it accumulates.
struct scaled_sum_args {
    const float *in;     // [elements]
    float       *out;    // [1]
    int64_t      elements;
    float        factor;
    bool         accumulates;
};
KERNEL_FUNCTION int kernel_scaled_sum(const struct scaled_sum_args *args, const struct kernel_target *target);

#endif
