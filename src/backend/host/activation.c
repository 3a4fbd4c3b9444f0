// SPDX-License-Identifier: MIT
// Computes the MLP activation, gated (SwiGLU, GEGLU) or plain (GELU, squared ReLU), forward and backward.
#include "gswbench/arithmetic.h"
#include "gswbench/fatal.h"
#include "gswbench/op_shape.h"
#include "gswbench/status.h"
#include "internal.h"

static bool is_gated(const struct op *op)
{
    return op->shape.rows.variant == ACTIVATION_SWIGLU || op->shape.rows.variant == ACTIVATION_GEGLU;
}

// Returns the number of floats of scratch per thread: rows of the output gradient, of gate and up and their gradients.
static int64_t floats(const struct op *op)
{
    return 5 * op->shape.rows.columns;
}

static void activate(float *out, const float *in, int64_t columns, int32_t variant)
{
    switch (variant) {
    case ACTIVATION_SWIGLU:
        for (int64_t i = 0; i < columns; i++) {
            out[i] = arithmetic_silu(in[i]) * in[i + columns];
        }
        return;
    case ACTIVATION_GEGLU:
        for (int64_t i = 0; i < columns; i++) {
            out[i] = arithmetic_gelu(in[i]) * in[i + columns];
        }
        return;
    case ACTIVATION_GELU:
        for (int64_t i = 0; i < columns; i++) {
            out[i] = arithmetic_gelu(in[i]);
        }
        return;
    case ACTIVATION_RELU2:
        for (int64_t i = 0; i < columns; i++) {
            out[i] = arithmetic_relu2(in[i]);
        }
        return;
    default:
        FATAL(EXIT_INTERNAL, "unknown activation %d", (int)variant);
    }
}

// Computes `to`, the gradient of the activation's input, from the gradient of its output.
static void differentiate(float *restrict to, const float *gradient, const float *in, int64_t columns, int32_t variant)
{
    switch (variant) {
    case ACTIVATION_SWIGLU:
        for (int64_t i = 0; i < columns; i++) {
            to[i]           = gradient[i] * in[i + columns] * arithmetic_silu_slope(in[i]);
            to[i + columns] = gradient[i] * arithmetic_silu(in[i]);
        }
        return;
    case ACTIVATION_GEGLU:
        for (int64_t i = 0; i < columns; i++) {
            to[i]           = gradient[i] * in[i + columns] * arithmetic_gelu_slope(in[i]);
            to[i + columns] = gradient[i] * arithmetic_gelu(in[i]);
        }
        return;
    case ACTIVATION_GELU:
        for (int64_t i = 0; i < columns; i++) {
            to[i] = gradient[i] * arithmetic_gelu_slope(in[i]);
        }
        return;
    case ACTIVATION_RELU2:
        for (int64_t i = 0; i < columns; i++) {
            to[i] = gradient[i] * arithmetic_relu2_slope(in[i]);
        }
        return;
    default:
        FATAL(EXIT_INTERNAL, "unknown activation %d", (int)variant);
    }
}

static void forward_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct op     *op      = loop->op;
    const struct buffer *out     = &loop->buffers[ACTIVATION_OUT];
    int64_t              columns = op->shape.rows.columns, width = is_gated(op) ? 2 * columns : columns;
    float               *space = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        const float *in     = row_read(&loop->buffers[ACTIVATION_IN], row * width, width, space);
        float       *values = row_open(out, row * columns, space + 2 * columns);
        activate(values, in, columns, op->shape.rows.variant);
        row_close(out, row * columns, columns, values);
    }
}

const struct host_op host_activation_forward = {.body = forward_rows, .count = host_count_rows, .each = floats};

static void backward_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct op     *op      = loop->op;
    const struct buffer *to      = &loop->buffers[ACTIVATION_GRADIENT_IN];
    int64_t              columns = op->shape.rows.columns, width = is_gated(op) ? 2 * columns : columns;
    float               *space = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        const float *gradient = row_read(&loop->buffers[ACTIVATION_GRADIENT_OUT], row * columns, columns, space);
        const float *in     = row_read(&loop->buffers[ACTIVATION_GRADIENT_IN_IN], row * width, width, space + columns);
        float       *values = row_open(to, row * width, space + 3 * columns);
        differentiate(values, gradient, in, columns, op->shape.rows.variant);
        row_close(to, row * width, width, values);
    }
}

const struct host_op host_activation_backward = {.body = backward_rows, .count = host_count_rows, .each = floats};
