// SPDX-License-Identifier: MIT
// Operands that look like real ones: power, and so speed, depends on the bits that switch.
// Bound by the generator's integer arithmetic; used before steps only.
#ifndef GSWBENCH_KERNELS_RANDOM_H
#define GSWBENCH_KERNELS_RANDOM_H

#include "gswbench/format.h"
#include "launch.h"

struct random_fill_args {
    void       *out;    // [elements]
    int64_t     elements;
    enum format type;    // f32, bf16 or FP8
    uint64_t    key;     // of random.h: element i is its normal value number i, in FP8 scaled to the format's range
};
KERNEL_FUNCTION int kernel_random_fill(const struct random_fill_args *args, const struct kernel_target *target);

#endif
