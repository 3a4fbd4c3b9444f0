// SPDX-License-Identifier: MIT
// Rows picked by an index: the embedding, and the dispatch of tokens to experts.
// Bound by memory: each row is read and written once.
#ifndef GSWBENCH_KERNELS_GATHER_H
#define GSWBENCH_KERNELS_GATHER_H

#include "gswbench/format.h"
#include "launch.h"

// Row i of out is row (index[i] - first) / divisor of in, or zeros where index[i] - first is not within 0 .. count - 1,
// times the multiplier; or has these added.
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
