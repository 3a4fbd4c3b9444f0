// SPDX-License-Identifier: MIT
// Computes MoE dispatch, which copies tokens to the slots of their experts, and combine, which sums expert outputs with
// weights; and their gradients.
#include <string.h>

#include "internal.h"

// Returns the number of floats of scratch per thread: one input row and one output row.
static int64_t floats(const struct op *op)
{
    return 2 * op->shape.routing.columns;
}

static int64_t count_slots(const struct op *op)
{
    return routing_slots(&op->shape.routing);
}

static void dispatch_slots(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    const int32_t              *sources = loop->buffers[DISPATCH_SOURCES].data;
    const float                *gates   = loop->buffers[DISPATCH_GATES].data;
    const struct buffer        *in = &loop->buffers[DISPATCH_IN], *out = &loop->buffers[DISPATCH_OUT];
    float                      *space = host_space(loop, thread), *scaled = space + shape->columns;
    for (int64_t slot = first; slot < last; slot++) {
        if (sources[slot] < 0) {
            row_clear(out, slot * shape->columns, shape->columns);
            continue;
        }
        int64_t row = sources[slot] / shape->top_k;
        if (gates == NULL) {
            row_copy(out, slot * shape->columns, in, row * shape->columns, shape->columns);
            continue;
        }
        const float *x = row_read(in, row * shape->columns, shape->columns, space);
        row_scale(scaled, x, shape->columns, gates[sources[slot]]);
        row_store(out, slot * shape->columns, shape->columns, scaled, false);
    }
}

const struct host_op host_dispatch = {.body = dispatch_slots, .count = count_slots, .each = floats};

static void combine_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape   = &loop->op->shape.routing;
    const int32_t              *slots   = loop->buffers[COMBINE_SLOTS].data;
    const float                *gates   = loop->buffers[COMBINE_GATES].data;
    int64_t                     columns = shape->columns;
    float                      *space = host_space(loop, thread), *sum = space + columns;
    for (int64_t row = first; row < last; row++) {
        memset(sum, 0, sizeof(*sum) * (size_t)columns);
        for (int64_t choice = row * shape->top_k; choice < (row + 1) * shape->top_k; choice++) {
            if (slots[choice] < 0) {
                continue;
            }
            const float *x    = row_read(&loop->buffers[COMBINE_IN], slots[choice] * columns, columns, space);
            float        gate = gates != NULL ? gates[choice] : 1.0f;
            for (int64_t i = 0; i < columns; i++) {
                sum[i] += gate * x[i];
            }
        }
        row_store(&loop->buffers[COMBINE_OUT], row * columns, columns, sum, loop->op->accumulates);
    }
}

const struct host_op host_combine = {.body = combine_rows, .count = host_count_routed, .each = floats};

static void combine_backward_slots(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct routing_shape *shape          = &loop->op->shape.routing;
    const struct buffer        *buffers        = loop->buffers;
    const int32_t              *sources        = buffers[COMBINE_GRADIENT_SOURCES].data;
    const float                *gates          = buffers[COMBINE_GRADIENT_GATES_IN].data;
    float                      *gates_gradient = buffers[COMBINE_GRADIENT_GATES].data;
    int64_t                     columns        = shape->columns;
    bool                        is_scaled      = buffers[COMBINE_GRADIENT_IN].data != NULL;
    float                      *space = host_space(loop, thread), *scaled = space + columns;
    for (int64_t slot = first; slot < last; slot++) {
        int64_t choice = sources[slot];
        if (choice < 0) {
            if (is_scaled) {
                row_clear(&buffers[COMBINE_GRADIENT_IN], slot * columns, columns);
            }
            continue;
        }
        const float *out = row_read(&buffers[COMBINE_GRADIENT_OUT], choice / shape->top_k * columns, columns, space);
        const float *in  = row_read(&buffers[COMBINE_GRADIENT_IN_IN], slot * columns, columns, scaled);
        gates_gradient[choice] = (float)row_dot(out, in, columns);
        if (is_scaled) {
            row_scale(scaled, out, columns, gates[choice]);
            row_store(&buffers[COMBINE_GRADIENT_IN], slot * columns, columns, scaled, false);
        }
    }
}

// Zeroes the gate gradients first: a dropped choice (one of a token's top-k experts) has no slot, so the loop over
// slots does not reach its gate.
static void combine_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct routing_shape *shape = &op->shape.routing;
    memset(buffers[COMBINE_GRADIENT_GATES].data, 0, sizeof(float) * (size_t)(shape->rows * shape->top_k));
    host_run_loop(backend, op, buffers, combine_backward_slots, routing_slots(shape));
}

const struct host_op host_combine_backward = {.run = combine_backward, .each = floats};

// Does nothing: on the host backend, the token counts are already in host memory.
const struct host_op host_read_token_counts = {.run = NULL};
