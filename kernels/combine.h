// SPDX-License-Identifier: MIT
// MoE combine: weighted sum of a token's expert outputs, and its gradient. Memory-bound: in bf16, 2 (top_k + 1) bytes
// per element forward, 6 bytes per slot element backward.
#ifndef GSWBENCH_KERNELS_COMBINE_H
#define GSWBENCH_KERNELS_COMBINE_H

#include "gswbench/format.h"
#include "launch.h"

struct combine_args {
    const void    *in;        // [slots, columns]
    const int32_t *places;    // [rows, top_k]: slot of each choice, or -1
    const float   *gates;     // [rows, top_k]; NULL: all 1
    void          *out;       // [rows, columns]
    int64_t        rows, columns, top_k, slots;
    bool           accumulates;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine(const struct combine_args *args, const struct kernel_target *target);

struct combine_backward_args {
    const void    *gradient;          // [rows, columns]
    const void    *in;                // [slots, columns]; NULL without gates_gradient
    const int32_t *sources;           // [slots]: choice in each slot, or -1
    const float   *gates;             // [rows, top_k]
    void          *out;               // [slots, columns]: d in, zero for empty slots; may be NULL
    float         *gates_gradient;    // [rows, top_k]: zero for dropped choices; may be NULL
    int64_t        rows, slots, columns, top_k;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine_backward(const struct combine_backward_args *args,
                                            const struct kernel_target         *target);

#endif
