// SPDX-License-Identifier: MIT
// Normalisation of rows, with the residual sum before it, and its gradient.
// Bound by memory: with bf16, 4 bytes an element forward (8 with a branch), 6 backward (8 with a residual).
#ifndef GSWBENCH_KERNELS_NORM_H
#define GSWBENCH_KERNELS_NORM_H

#include <stdbool.h>

#include "gswbench/format.h"
#include "quantize.h"

// A thread holds so many elements of its row in registers; so many threads at most share a row.
enum { NORM_HELD = 32, NORM_THREADS_MAX = 640, NORM_COLUMNS_MAX = NORM_HELD * NORM_THREADS_MAX };

struct norm_forward_args {
    const void *in, *branch;      // [rows, columns]; branch may be absent
    const void *weight, *bias;    // [columns]; bias may be absent
    void       *sum;              // [rows, columns]: in + branch; not written without a branch
    void       *out;              // [rows, columns]; may be absent
    float      *statistics;       // [rows, 2]: mean (0 without centring), 1 / deviation
    float      *magnitude;        // [1]: receives the largest magnitude of what is in out, or would be; may be absent
    int64_t     rows, columns;
    float       epsilon;
    float       weight_offset;    // added to every weight
    bool        is_centred;       // layer norms
    enum format activation;       // of all but the statistics
};
KERNEL_FUNCTION int kernel_norm_forward(const struct norm_forward_args *args, const struct kernel_target *target);

// The copies of an out that is absent, after kernel_norm_forward: sum, or in, is read a second time.
KERNEL_FUNCTION int kernel_norm_quantize(const struct norm_forward_args *args, const struct quantize_args *copies,
                                         const struct kernel_target *target);

struct norm_backward_args {
    const void  *gradient, *x, *residual;    // [rows, columns]; residual may be absent
    const void  *weight;                     // [columns]
    const float *statistics;                 // [rows, 2]
    void        *out;                        // [rows, columns]: d x + residual
    void        *weight_gradient;            // [columns]
    void        *bias_gradient;              // [columns], may be absent
    float       *scratch;                    // kernel_norm_backward_scratch_bytes
    int64_t      rows, columns;
    float        weight_offset;
    bool         is_centred, accumulates;
    enum format  activation, weight_gradient_type;
};
KERNEL_FUNCTION int kernel_norm_backward(const struct norm_backward_args *args, const struct kernel_target *target);

// Of its scratch, for arrays of any type, wherever they lie; sums is 2 with a bias.
KERNEL_FUNCTION int64_t kernel_norm_backward_scratch_bytes(int64_t rows, int64_t columns, int64_t sums,
                                                           const struct kernel_target *target);

// Where a block's threads cannot hold the weight gradients of its rows, they lie in shared memory: fp32 [sums, whole
// packets].
GSWBENCH_INLINE int64_t norm_backward_shared_bytes(int64_t columns, int64_t sums)
{
    return sums * launch_groups(columns, LAUNCH_WIDTH) * LAUNCH_WIDTH * (int64_t)sizeof(float);
}

GSWBENCH_INLINE struct launch norm_launch(int64_t rows, int64_t columns, int32_t multiprocessors)
{
    return launch_rows(rows, launch_groups(columns, NORM_HELD), NORM_THREADS_MAX, multiprocessors);
}

// As many blocks as stay resident: each leaves one row of sums to add.
GSWBENCH_INLINE struct launch norm_backward_launch(int64_t rows, int64_t columns, int32_t resident,
                                                   int32_t multiprocessors)
{
    struct launch launch = norm_launch(rows, columns, multiprocessors);
    launch.blocks        = launch_resident_blocks(rows, resident, multiprocessors);
    return launch;
}

#endif
