// SPDX-License-Identifier: MIT
// Computes the RMS norm of y * silu(z) in each group of columns, and its gradient. Groups are divided among threads.
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

enum { ROWS = 5 };

static int64_t width_of(const struct mamba_shape *shape)
{
    return mamba_inner(shape) / shape->groups;
}

// Returns the number of floats of scratch per thread: ROWS rows of a group in fp32, and the sums of the weight gradient
// in double.
static int64_t floats(const struct op *op)
{
    return (ROWS + 2) * width_of(&op->shape.mamba);
}

static void forward_groups(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape      = &loop->op->shape.mamba;
    float                    *statistics = loop->buffers[GATED_NORM_STATISTICS].data, *space = host_space(loop, thread);
    int64_t                   width = width_of(shape);
    for (int64_t group = first; group < last; group++) {
        const float *weight = row_read(&loop->buffers[GATED_NORM_WEIGHT], group * width, width, space);
        for (int64_t token = 0; token < shape->batch * shape->sequence; token++) {
            int64_t      at = token * mamba_inner(shape) + group * width;
            const float *y  = row_read(&loop->buffers[GATED_NORM_IN], at, width, space + width);
            const float *z  = row_read(&loop->buffers[GATED_NORM_PACKED], token * mamba_packed(shape) + group * width,
                                       width, space + 2 * width);
            float       *v = space + 3 * width, *out = space + 4 * width;
            for (int64_t i = 0; i < width; i++) {
                v[i] = y[i] * arithmetic_silu(z[i]);
            }
            float scale = (float)(1 / sqrt(row_dot(v, v, width) / (double)width + (double)shape->epsilon));
            for (int64_t i = 0; i < width; i++) {
                out[i] = v[i] * scale * weight[i];
            }
            row_store(&loop->buffers[GATED_NORM_OUT], at, width, out, false);
            statistics[token * shape->groups + group] = scale;
        }
    }
}

const struct host_op host_gated_norm_forward = {.body = forward_groups, .count = host_count_groups, .each = floats};

// Computes the gradients at one position of a group. sums: the gradient of the weight, to which it adds.
static void backward_position(const struct loop *loop, int64_t token, int64_t group, const float *weight, double *sums)
{
    const struct mamba_shape *shape   = &loop->op->shape.mamba;
    const struct buffer      *buffers = loop->buffers;
    int64_t                   width = width_of(shape), at = token * mamba_inner(shape) + group * width;
    int64_t                   packed = token * mamba_packed(shape) + group * width;
    float                    *space  = (float *)(void *)(sums + width);
    const float              *d      = row_read(&buffers[GATED_NORM_GRADIENT_OUT], at, width, space);
    const float              *y      = row_read(&buffers[GATED_NORM_GRADIENT_IN_IN], at, width, space + width);
    const float              *z = row_read(&buffers[GATED_NORM_GRADIENT_PACKED_IN], packed, width, space + 2 * width);
    float                    *product = space + 3 * width;
    float  scale = ((const float *)buffers[GATED_NORM_GRADIENT_STATISTICS].data)[token * shape->groups + group];
    double along = 0;
    for (int64_t i = 0; i < width; i++) {
        float normalised = y[i] * arithmetic_silu(z[i]) * scale;
        product[i]       = d[i] * weight[i];
        sums[i] += (double)d[i] * (double)normalised;
        along += (double)product[i] * (double)normalised;
    }
    float mean = (float)(along / (double)width);
    for (int64_t i = 0; i < width; i++) {
        float gate  = arithmetic_silu(z[i]);
        float slope = scale * (product[i] - y[i] * gate * scale * mean);
        float d_z   = slope * y[i] * arithmetic_silu_slope(z[i]);
        product[i]  = slope * gate;
        space[i]    = d_z;    // d may point to space; d[i] is no longer needed
    }
    row_store(&buffers[GATED_NORM_GRADIENT_IN], at, width, product, false);
    row_store(&buffers[GATED_NORM_GRADIENT_PACKED], packed, width, space, false);
}

static void backward_groups(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape = &loop->op->shape.mamba;
    int64_t                   width = width_of(shape);
    double                   *sums  = host_space(loop, thread);
    float                    *own   = (float *)(void *)(sums + width) + 4 * width;
    for (int64_t group = first; group < last; group++) {
        const float *weight = row_read(&loop->buffers[GATED_NORM_GRADIENT_WEIGHT_IN], group * width, width, own);
        memset(sums, 0, sizeof(*sums) * (size_t)width);
        for (int64_t token = 0; token < shape->batch * shape->sequence; token++) {
            backward_position(loop, token, group, weight, sums);
        }
        row_store_sums(&loop->buffers[GATED_NORM_GRADIENT_WEIGHT], group * width, width, sums,
                       (float *)(void *)(sums + width), loop->op->accumulates);
    }
}

static void clear_others(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct mamba_shape *shape  = &loop->op->shape.mamba;
    const struct buffer      *packed = &loop->buffers[GATED_NORM_GRADIENT_PACKED];
    int64_t                   inner = mamba_inner(shape), others = mamba_packed(shape) - inner;
    (void)thread;
    for (int64_t token = first; token < last; token++) {
        row_clear(packed, token * mamba_packed(shape) + inner, others);
    }
}

static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_groups, op->shape.mamba.groups);
    host_run_loop(backend, op, buffers, clear_others, op->shape.mamba.batch * op->shape.mamba.sequence);
}

const struct host_op host_gated_norm_backward = {.run = run_backward, .each = floats};
