// SPDX-License-Identifier: MIT
// Activations of an MLP, gated or plain, and their gradients.
// Bound by memory: with bf16, gated 6 bytes an output element forward and 10 backward; plain 4 and 6.
#ifndef GSWBENCH_KERNELS_ACTIVATION_H
#define GSWBENCH_KERNELS_ACTIVATION_H

#include "gswbench/format.h"
#include "quantize.h"

enum activation_function { ACTIVATION_FUNCTION_SILU, ACTIVATION_FUNCTION_GELU, ACTIVATION_FUNCTION_RELU2 };

struct activation_forward_args {
    const void *in;           // [rows, 2 columns] (gate, up) when gated, else [rows, columns]
    void       *out;          // [rows, columns]; may be absent where the magnitude is asked for
    float      *magnitude;    // [1]: receives the largest magnitude of what is in out, or would be; may be absent
    int64_t     rows, columns;
    enum activation_function function;
    bool                     is_gated;
    enum format              type;
};
KERNEL_FUNCTION int kernel_activation_forward(const struct activation_forward_args *args,
                                              const struct kernel_target           *target);
// Copies of what would be in out.
KERNEL_FUNCTION int kernel_activation_forward_quantize(const struct activation_forward_args *args,
                                                       const struct quantize_args           *copies,
                                                       const struct kernel_target           *target);

struct activation_backward_args {
    const void              *gradient;     // [rows, columns]
    const void              *in;           // as forward
    void                    *out;          // as in; may be absent where the magnitude is asked for
    float                   *magnitude;    // as forward
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

#endif
