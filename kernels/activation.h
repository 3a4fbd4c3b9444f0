// SPDX-License-Identifier: MIT
// Computes MLP activations, gated or plain, and their gradients. Memory-bound: in bf16, a gated activation moves 6
// bytes per output element forward and 10 backward. A plain one moves 4 and 6.
#pragma once

#include "gswbench/format.h"
#include "quantize.h"

enum activation_function { ACTIVATION_FUNCTION_SILU, ACTIVATION_FUNCTION_GELU, ACTIVATION_FUNCTION_RELU2 };

struct activation_forward_args {
    const void              *in;           // [rows, 2 columns] (gate, up) if gated, else [rows, columns]
    void                    *out;          // [rows, columns]; NULL: computes only the amax
    float                   *magnitude;    // [1]: amax of out as stored, or NULL
    int64_t                  rows, columns;
    enum activation_function function;
    bool                     is_gated;
    enum format              type;
};
KERNEL_FUNCTION int kernel_activation_forward(const struct activation_forward_args *args,
                                              const struct kernel_target           *target);
// Computes the output and stores only its FP8 copies.
KERNEL_FUNCTION int kernel_activation_forward_quantize(const struct activation_forward_args *args,
                                                       const struct quantize_args           *copies,
                                                       const struct kernel_target           *target);

struct activation_backward_args {
    const void              *gradient;     // [rows, columns]: gradient of the output
    const void              *in;           // input of the forward pass
    void                    *out;          // gradient of in, same shape; NULL: computes only the amax
    float                   *magnitude;    // [1]: amax of out as stored, or NULL
    int64_t                  rows, columns;
    enum activation_function function;
    bool                     is_gated;
    enum format              type;
};
KERNEL_FUNCTION int kernel_activation_backward(const struct activation_backward_args *args,
                                               const struct kernel_target            *target);
KERNEL_FUNCTION int kernel_activation_backward_quantize(const struct activation_backward_args *args,
                                                        const struct quantize_args            *copies,
                                                        const struct kernel_target            *target);
