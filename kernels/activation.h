// SPDX-License-Identifier: MIT
// Computes MLP activations, gated or plain, and their gradients. Memory-bound: in bf16, a gated activation moves 6
// bytes per output element forward and 10 backward. A plain one moves 4 and 6.
#pragma once

#include "gswbench/format.h"
#include "quantize.h"

enum activation_function { ACTIVATION_FUNCTION_SILU, ACTIVATION_FUNCTION_GELU, ACTIVATION_FUNCTION_RELU2 };

struct activation_args {
    const void              *gradient;     // [rows, columns]: gradient of the output; NULL: forward pass
    const void              *in;           // [rows, 2 columns] (gate, up) if gated, else [rows, columns]
    void                    *out;          // output [rows, columns], or gradient of in; NULL: computes only the amax
    float                   *magnitude;    // [1]: amax of out as stored, or NULL
    int64_t                  rows, columns;
    enum activation_function function;
    bool                     is_gated;
    enum format              type;
};
KERNEL_FUNCTION int kernel_activation(const struct activation_args *args, const struct kernel_target *target);
// Computes out and stores only its FP8 copies.
KERNEL_FUNCTION int kernel_activation_quantize(const struct activation_args *args, const struct quantize_args *copies,
                                               const struct kernel_target *target);
