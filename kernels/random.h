// SPDX-License-Identifier: MIT
// Random operands for benchmarks: power, and so speed, depends on how many bits toggle. Bound by integer arithmetic;
// used only before steps.
#ifndef GSWBENCH_KERNELS_RANDOM_H
#define GSWBENCH_KERNELS_RANDOM_H

#include "gswbench/format.h"
#include "launch.h"

struct random_fill_args {
    void       *out;    // [elements]
    int64_t     elements;
    enum format type;    // f32, bf16 or FP8
    uint64_t    key;     // key of random.h: element i is its normal number i, scaled to the range in FP8
};
KERNEL_FUNCTION int kernel_random_fill(const struct random_fill_args *args, const struct kernel_target *target);

#endif
