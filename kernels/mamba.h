// SPDX-License-Identifier: MIT
// Declares the kernels of Mamba-2: causal convolution, selective scan and gated norm, forward and backward. `packed` is
// the output of the input projection. struct mamba_shape describes its layout: z, x, B, C and dt of each token.
#pragma once

#include "gswbench/op_shape.h"

#include "launch.h"

enum { MAMBA_TAPS_MAX = 16, SCAN_HEAD_MAX = 128, SCAN_STATE_MAX = 256 };

// Causal convolution of each channel, then SiLU. Memory-bound: it reads and writes the channels. Backward also writes
// the gradient before SiLU to scratch in fp32 and reads it twice.
struct convolution_args {
    const void        *packed;                             // [tokens, packed]
    const void        *weight, *bias;                      // [channels, taps], [channels]
    void              *out;                                // [tokens, channels]
    const void        *gradient;                           // backward: gradient of out
    void              *packed_gradient;                    // backward: gradient of packed; only x, B and C are written
    void              *weight_gradient, *bias_gradient;    // backward: [channels, taps], [channels]
    float             *scratch;                            // backward; size: kernel_convolution_scratch_bytes
    struct mamba_shape shape;
    bool               accumulates;
    enum format        type, gradient_type;
};
KERNEL_FUNCTION int     kernel_convolution(const struct convolution_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int     kernel_convolution_backward(const struct convolution_args *args,
                                                    const struct kernel_target    *target);
KERNEL_FUNCTION int64_t kernel_convolution_scratch_bytes(const struct mamba_shape *shape);

// Selective scan of a head: dt' = softplus(dt + step_bias), S = exp(-exp(decay) dt') S + dt' x B^T, out = S C + skip x.
// One thread block handles a head of a sequence, one position after the other, with the state S in registers. Bound by
// the latency of a position, not by memory. A head has at most SCAN_HEAD_MAX elements and SCAN_STATE_MAX states.
struct scan_args {
    const void        *convolved, *packed;          // [tokens, channels], [tokens, packed]
    const void        *step_bias, *decay, *skip;    // [heads]
    void              *out;                         // [tokens, inner]
    const void        *gradient;                    // backward: gradient of out
    void              *convolved_gradient;          // backward: gradient of convolved
    void              *packed_gradient;             // backward: gradient of packed; only dt is written
    void              *step_bias_gradient, *decay_gradient, *skip_gradient;    // backward: [heads]
    float             *scratch;                                                // backward: kernel_scan_scratch_bytes
    struct mamba_shape shape;
    bool               accumulates;
    enum format        type, gradient_type;
};
KERNEL_FUNCTION int     kernel_scan(const struct scan_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int     kernel_scan_backward(const struct scan_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_scan_scratch_bytes(const struct mamba_shape *shape);

// RMS norm of in * silu(z), separately for each group of columns. Memory-bound: forward reads two arrays and writes
// one. Backward reads three, and writes the gradient of `in` and packed_gradient, which is zero except for z.
struct gated_norm_args {
    const void        *in, *packed, *weight;    // [tokens, inner], [tokens, packed], [inner]
    void              *out;                     // [tokens, inner]
    float             *statistics;              // [tokens, groups]: 1 / rms
    const void        *gradient;                // backward: gradient of out
    void              *in_gradient;             // backward: gradient of in
    void              *packed_gradient;         // backward: gradient of packed; all columns but z are zero
    void              *weight_gradient;         // backward: [inner]
    float             *scratch;                 // backward; size: kernel_gated_norm_scratch_bytes
    struct mamba_shape shape;
    bool               accumulates;
    enum format        type, gradient_type;
};
KERNEL_FUNCTION int kernel_gated_norm(const struct gated_norm_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int kernel_gated_norm_backward(const struct gated_norm_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_gated_norm_scratch_bytes(const struct mamba_shape *shape);
