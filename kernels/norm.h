// SPDX-License-Identifier: MIT
// Computes RMS norm and layer norm of rows, with the residual sum before the norm, and MLP activations. Also computes
// their gradients. Norms are memory-bound: in bf16, 4 bytes per element forward (8 if a branch is added first), 6
// backward (8 if a residual gradient is added).
#pragma once

#include <stdbool.h>

#include "gswbench/format.h"
#include "quantize.h"

// Maximum elements of a row that a thread holds in registers, maximum threads per row, and maximum row length.
enum { NORM_HELD = 32, NORM_THREADS_MAX = 640, NORM_COLUMNS_MAX = NORM_HELD * NORM_THREADS_MAX };

struct norm_forward_args {
    const void *in, *branch;      // [rows, columns]; branch may be NULL
    const void *weight, *bias;    // [columns]; bias may be NULL
    void       *sum;              // [rows, columns]: in + branch; not written without a branch
    void       *out;              // [rows, columns]; may be NULL
    float      *statistics;       // [rows, 2]: mean (0 for RMS norm), 1 / deviation
    float      *magnitude;        // [1]: amax of out as stored, or NULL
    int64_t     rows, columns;
    float       epsilon;
    float       weight_offset;    // added to every weight; 1 for NORM_LAYER_1P, else 0
    bool        is_centred;       // true: layer norm; false: RMS norm
    enum format activation;       // type of every array except statistics
};
KERNEL_FUNCTION int kernel_norm_forward(const struct norm_forward_args *args, const struct kernel_target *target);

// Writes FP8 copies of the norm's output. Runs after kernel_norm_forward, reads its input (sum, or in) and statistics,
// and does not store the output in bf16.
KERNEL_FUNCTION int kernel_norm_quantize(const struct norm_forward_args *args, const struct quantize_args *copies,
                                         const struct kernel_target *target);

struct norm_backward_args {
    const void  *gradient, *x, *residual;    // [rows, columns]; x: input of the norm (sum, or in); residual may be NULL
    const void  *weight;                     // [columns]
    const float *statistics;                 // [rows, 2]
    void        *out;                        // [rows, columns]: d x + residual
    void        *weight_gradient;            // [columns] or NULL: frozen
    void        *bias_gradient;              // [columns] or NULL
    float       *scratch;                    // size: kernel_norm_backward_scratch_bytes
    int64_t      rows, columns;
    float        weight_offset;
    bool         is_centred, accumulates;
    enum format  activation, weight_gradient_type;
};
KERNEL_FUNCTION int kernel_norm_backward(const struct norm_backward_args *args, const struct kernel_target *target);

// Returns the scratch bytes that suffice for all types and alignments. sums: 2 with a bias, else 1.
KERNEL_FUNCTION int64_t kernel_norm_backward_scratch_bytes(int64_t rows, int64_t columns, int64_t sums,
                                                           const struct kernel_target *target);

// Returns the shared memory for a block's partial sums of the weight and bias gradients, if they do not fit in
// registers: fp32 [sums, columns], with columns rounded up to whole packets.
GSWBENCH_INLINE int64_t norm_backward_shared_bytes(int64_t columns, int64_t sums)
{
    return sums * launch_groups(columns, LAUNCH_WIDTH) * LAUNCH_WIDTH * (int64_t)sizeof(float);
}

// Returns whether a block has enough shared memory for these partial sums. If not, the bias gradient has its own
// kernel.
GSWBENCH_INLINE bool norm_backward_fits(int64_t columns, int64_t sums, int32_t shared_bytes)
{
    const int64_t reserved = 2048;    // for the static arrays of block reductions
    return norm_backward_shared_bytes(columns, sums) <= shared_bytes - reserved;
}

GSWBENCH_INLINE struct launch norm_launch(int64_t rows, int64_t columns, int32_t multiprocessors)
{
    return launch_rows(rows, launch_groups(columns, NORM_HELD), NORM_THREADS_MAX, multiprocessors);
}

// Returns a launch with at most as many blocks as run at once, because each block writes one row of partial sums to
// scratch.
GSWBENCH_INLINE struct launch norm_backward_launch(int64_t rows, int64_t columns, int32_t resident,
                                                   int32_t multiprocessors)
{
    struct launch launch = norm_launch(rows, columns, multiprocessors);
    launch.blocks        = launch_resident_blocks(rows, resident, multiprocessors);
    return launch;
}

// MLP activations, gated or plain, and their gradients. Memory-bound: in bf16, a gated activation moves 6 bytes per
// output element forward and 10 backward. A plain one moves 4 and 6.
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
