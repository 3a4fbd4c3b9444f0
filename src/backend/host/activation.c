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

struct curve {
    float (*value)(float x), (*slope)(float x);
};

// Computes an activation, or, if the gradient of its output is given, the gradient of its input. Inlined into the
// switch below, so that each variant has its own vectorised loop.
static inline __attribute__((always_inline)) void apply(float *restrict to, const float *gradient, const float *in,
                                                        int64_t columns, bool is_gated, struct curve curve)
{
    if (gradient == NULL) {
        for (int64_t i = 0; i < columns; i++) {
            to[i] = curve.value(in[i]) * (is_gated ? in[i + columns] : 1.0f);
        }
        return;
    }
    for (int64_t i = 0; i < columns; i++) {
        to[i] = gradient[i] * (is_gated ? in[i + columns] : 1.0f) * curve.slope(in[i]);
        if (is_gated) {
            to[i + columns] = gradient[i] * curve.value(in[i]);
        }
    }
}

static void apply_variant(float *to, const float *gradient, const float *in, int64_t columns, int32_t variant)
{
    switch (variant) {
    case ACTIVATION_SWIGLU:
        apply(to, gradient, in, columns, true, (struct curve){arithmetic_silu, arithmetic_silu_slope});
        return;
    case ACTIVATION_GEGLU:
        apply(to, gradient, in, columns, true, (struct curve){arithmetic_gelu, arithmetic_gelu_slope});
        return;
    case ACTIVATION_GELU:
        apply(to, gradient, in, columns, false, (struct curve){arithmetic_gelu, arithmetic_gelu_slope});
        return;
    case ACTIVATION_RELU2:
        apply(to, gradient, in, columns, false, (struct curve){arithmetic_relu2, arithmetic_relu2_slope});
        return;
    default:
        FATAL(EXIT_INTERNAL, "unknown activation %d", (int)variant);
    }
}

static void compute_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct op     *op          = loop->op;
    bool                 is_backward = op->kind == OP_ACTIVATION_BACKWARD;
    const struct buffer *from        = &loop->buffers[is_backward ? ACTIVATION_GRADIENT_IN_IN : ACTIVATION_IN];
    const struct buffer *to          = &loop->buffers[is_backward ? ACTIVATION_GRADIENT_IN : ACTIVATION_OUT];
    int64_t              columns = op->shape.rows.columns, width = is_gated(op) ? 2 * columns : columns;
    int64_t              to_width = is_backward ? width : columns;
    float               *space    = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        const float *in       = row_read(from, row * width, width, space + columns);
        const float *gradient = NULL;
        if (is_backward) {
            gradient = row_read(&loop->buffers[ACTIVATION_GRADIENT_OUT], row * columns, columns, space);
        }
        float *values = row_open(to, row * to_width, space + 3 * columns);
        apply_variant(values, gradient, in, columns, op->shape.rows.variant);
        row_close(to, row * to_width, to_width, values);
    }
}

// Scratch per thread: rows of the output gradient, of gate and up and their gradients.
const struct host_op host_activation_forward  = {.body = compute_rows, .count = host_count_rows, .rows = 5};
const struct host_op host_activation_backward = {.body = compute_rows, .count = host_count_rows, .rows = 5};
