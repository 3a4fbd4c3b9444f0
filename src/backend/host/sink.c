// SPDX-License-Identifier: MIT
// Computes attention sinks: after attention over the keys, exp(sink) is added to the softmax denominator of each head.
#include <math.h>

#include "internal.h"

// Returns the number of floats of scratch per thread: two rows of a head, and the sink of each head.
static int64_t floats(const struct op *op)
{
    return 2 * op->shape.attention.head_dim + op->shape.attention.heads;
}

// Returns the index of a token's head 0 in the log-sum-exp values (statistics) [batch, heads, sequence].
static int64_t statistics_at(const struct attention_shape *shape, int64_t token)
{
    return token / shape->sequence * shape->heads * shape->sequence + token % shape->sequence;
}

static void forward_tokens(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct attention_shape *shape      = &loop->op->shape.attention;
    const struct buffer          *out        = &loop->buffers[SINK_OUT];
    float                        *statistics = loop->buffers[SINK_STATISTICS].data;
    float                        *space      = host_space(loop, thread);
    const float *sinks = row_read(&loop->buffers[SINK_SINKS], 0, shape->heads, space + 2 * shape->head_dim);
    for (int64_t token = first; token < last; token++) {
        for (int64_t head = 0; head < shape->heads; head++) {
            int64_t at   = (token * shape->heads + head) * shape->head_dim;
            float  *sum  = &statistics[statistics_at(shape, token) + head * shape->sequence];
            double  keys = (double)*sum, sink = (double)sinks[head];
            double  all    = fmax(keys, sink) + log1p(exp(-fabs(keys - sink)));
            float   keep   = (float)exp(keys - all);
            float  *values = row_open(out, at, space);
            row_scale(values, row_read(out, at, shape->head_dim, space), shape->head_dim, keep);
            row_close(out, at, shape->head_dim, values);
            *sum = (float)all;
        }
    }
}

const struct host_op host_sink_forward = {.body = forward_tokens, .count = host_count_tokens, .each = floats};

// Computes the gradients of the sinks. A sink takes exp(sink - lse) of the softmax weight, so its gradient is the sum
// over tokens of -exp(sink - lse) * dot(dO, O).
static void backward_heads(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct attention_shape *shape      = &loop->op->shape.attention;
    const float                  *statistics = loop->buffers[SINK_GRADIENT_STATISTICS].data;
    float                        *space      = host_space(loop, thread);
    for (int64_t head = first; head < last; head++) {
        float  of_head;
        double sink = (double)*row_read(&loop->buffers[SINK_GRADIENT_SINKS_IN], head, 1, &of_head), sum = 0;
        for (int64_t token = 0; token < shape->batch * shape->sequence; token++) {
            int64_t      at       = (token * shape->heads + head) * shape->head_dim;
            double       all      = (double)statistics[statistics_at(shape, token) + head * shape->sequence];
            const float *gradient = row_read(&loop->buffers[SINK_GRADIENT_OUT], at, shape->head_dim, space);
            const float *out =
                row_read(&loop->buffers[SINK_GRADIENT_OUT_IN], at, shape->head_dim, space + shape->head_dim);
            sum -= exp(sink - all) * row_dot(gradient, out, shape->head_dim);
        }
        row_store_sums(&loop->buffers[SINK_GRADIENT_SINKS], head, 1, &sum, space, loop->op->accumulates);
    }
}

static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_heads, op->shape.attention.heads);
}

const struct host_op host_sink_backward = {.run = run_backward, .each = floats};
