// SPDX-License-Identifier: MIT
// Splits packed q, k, v, RMS-normalises each head of q and k and rotates it; backward does the reverse and computes the
// norm weight gradients. Memory-bound: in bf16, 4 bytes per element of the packed rows forward, 6 backward.
#ifndef GSWBENCH_KERNELS_ROPE_NORM_H
#define GSWBENCH_KERNELS_ROPE_NORM_H

#include "rope.h"

struct rope_norm_args {
    struct rope_args rope;
    const void      *scale;             // [2, head_dim]: norm weights of q and k
    const void      *in;                // backward: packed rows of the forward pass
    void            *scale_gradient;    // [2, head_dim]
    float           *scratch;           // kernel_rope_norm_scratch_bytes
    float            epsilon;
    bool             accumulates;    // adds to scale_gradient
    enum format      scale_gradient_type;
};
KERNEL_FUNCTION int kernel_rope_norm(const struct rope_norm_args *args, const struct kernel_target *target);

// Scratch bytes of the backward pass.
KERNEL_FUNCTION int64_t kernel_rope_norm_scratch_bytes(const struct rope_args     *rope,
                                                       const struct kernel_target *target);

#endif
