// SPDX-License-Identifier: MIT
// Splits packed queries, keys and values, normalises each head of queries and keys and rotates it by its position, and
// the way back, with the gradients of what the normalised heads are multiplied by.
// Bound by memory: with bf16, 4 bytes an element of the packed rows forward, 6 backward.
#ifndef GSWBENCH_KERNELS_ROPE_NORM_H
#define GSWBENCH_KERNELS_ROPE_NORM_H

#include "rope.h"

struct rope_norm_args {
    struct rope_args rope;
    const void      *scale;             // [2, head_dim]: of queries, of keys
    const void      *in;                // backward: what forward had packed
    void            *scale_gradient;    // [2, head_dim]
    float           *scratch;           // kernel_rope_norm_scratch_bytes
    float            epsilon;
    bool             accumulates;    // the gradient of scale
    enum format      scale_gradient_type;
};
KERNEL_FUNCTION int kernel_rope_norm(const struct rope_norm_args *args, const struct kernel_target *target);

// Of the backward pass.
KERNEL_FUNCTION int64_t kernel_rope_norm_scratch_bytes(const struct rope_args     *rope,
                                                       const struct kernel_target *target);

#endif
