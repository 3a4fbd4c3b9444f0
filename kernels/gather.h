// SPDX-License-Identifier: MIT
// Gathers rows by index: embedding lookup and MoE dispatch. Memory-bound: each row is read and written once.
#ifndef GSWBENCH_KERNELS_GATHER_H
#define GSWBENCH_KERNELS_GATHER_H

#include "gswbench/format.h"
#include "launch.h"

// out[i] = multiplier * in[(index[i] - first) / divisor], or zeros if index[i] - first is outside 0 .. count - 1. With
// accumulates it is added to out.
struct gather_args {
    const int32_t *index;    // [rows]
    const void    *in;       // [count / divisor, columns]
    void          *out;      // [rows, columns]
    int64_t        rows, columns;
    int64_t        first, count, divisor;
    float          multiplier;
    bool           accumulates;
    enum format    type;
};
KERNEL_FUNCTION int kernel_gather(const struct gather_args *args, const struct kernel_target *target);

#endif
