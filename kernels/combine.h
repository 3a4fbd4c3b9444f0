// SPDX-License-Identifier: MIT
// The sum of what a token's experts return, and its gradient.
// Bound by memory: with bf16, 2 (top_k + 1) bytes an element forward; 6 bytes a slot's element backward.
#ifndef GSWBENCH_KERNELS_COMBINE_H
#define GSWBENCH_KERNELS_COMBINE_H

#include "gswbench/format.h"
#include "launch.h"

struct combine_args {
    const void    *in;        // [slots, columns]
    const int32_t *places;    // [rows, top_k]: the slot of a choice, or -1
    const float   *gates;     // [rows, top_k]; absent: all 1
    void          *out;       // [rows, columns]
    int64_t        rows, columns, top_k, slots;
    bool           accumulates;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine(const struct combine_args *args, const struct kernel_target *target);

struct combine_backward_args {
    const void    *gradient;          // [rows, columns]
    const void    *in;                // [slots, columns]; absent: without gates_gradient
    const int32_t *sources;           // [slots]: the choice that fills it, or -1
    const float   *gates;             // [rows, top_k]
    void          *out;               // [slots, columns]: d in, zero where a slot is empty; may be absent
    float         *gates_gradient;    // [rows, top_k]: zero where a choice has no slot; may be absent
    int64_t        rows, slots, columns, top_k;
    enum format    type;
};
KERNEL_FUNCTION int kernel_combine_backward(const struct combine_backward_args *args,
                                            const struct kernel_target         *target);

#endif
