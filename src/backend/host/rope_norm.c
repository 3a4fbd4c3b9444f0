// SPDX-License-Identifier: MIT
// Backward pass of RoPE with q and k norms: gradients of the packed rows and of the norm weights.
#include <string.h>

#include "rope.h"

// Scratch per thread: the rows of struct head_rows. Shared: partial sums in double of the weight gradients,
// [HOST_PARTS, 2, head_dim].
enum { BACKWARD_ROWS = 8 };

static int64_t part_floats(const struct op *op)
{
    return 2 * 2 * op->shape.attention.head_dim * HOST_PARTS;
}

int64_t host_rope_backward_floats(const struct op *op, int threads)
{
    int64_t floats = BACKWARD_ROWS * op->shape.attention.head_dim;
    return op->operand[ROPE_SCALE] >= 0 ? floats + part_floats(op) / threads + 32 : host_rope_floats(op, threads);
}

static double *part_sums(const struct loop *loop, int64_t part)
{
    int64_t head_dim = loop->op->shape.attention.head_dim;
    float  *shared   = host_scratch(loop, pool_threads(loop->host->pool), BACKWARD_ROWS * head_dim);
    return (double *)(void *)shared + part * 2 * head_dim;
}

struct head_rows {
    const float *scales;    // [2, head_dim]
    float       *sums;      // [2, head_dim]: weight gradients of one token
    float       *in, *turned, *x, *normalised;
};

static void backward_head(const struct loop *loop, int64_t token, int64_t head, const struct head_rows *rows)
{
    const struct attention_shape *shape    = &loop->op->shape.attention;
    int64_t                       head_dim = shape->head_dim;
    int64_t                       at       = (token * (shape->heads + 2 * shape->kv_heads) + head) * head_dim;
    int64_t                       of       = head < shape->heads ? 0 : head_dim;
    const struct buffer          *split    = &loop->buffers[head < shape->heads ? ROPE_QUERY : ROPE_KEY_VALUE];
    const struct buffer          *packed   = &loop->buffers[ROPE_PACKED];
    const float *angles = (const float *)loop->buffers[ROPE_TABLE].data + token % shape->sequence * shape->rotary;
    if (head >= shape->heads + shape->kv_heads) {
        row_copy(packed, at, split, rope_split_place(shape, token, head), head_dim);
        return;
    }
    const float *in = row_read(split, rope_split_place(shape, token, head), head_dim, rows->in);
    rope_rotate(rows->turned, in, shape, angles, -1.0f);
    const float *x       = row_read(&loop->buffers[ROPE_PACKED_IN], at, head_dim, rows->x);
    float        inverse = rope_normalise(rows->normalised, x, shape);
    for (int64_t i = 0; i < head_dim; i++) {
        rows->sums[of + i] += rows->turned[i] * rows->normalised[i];
        rows->turned[i] *= rows->scales[of + i];
    }
    float along = (float)(row_dot(rows->turned, rows->normalised, head_dim) / (double)head_dim);
    for (int64_t i = 0; i < head_dim; i++) {
        rows->turned[i] = inverse * (rows->turned[i] - rows->normalised[i] * along);
    }
    row_close(packed, at, head_dim, rows->turned);
}

static void backward_parts(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop            *loop   = context;
    const struct attention_shape *shape  = &loop->op->shape.attention;
    int64_t                       tokens = shape->batch * shape->sequence, head_dim = shape->head_dim;
    float                        *space = host_scratch(loop, thread, BACKWARD_ROWS * head_dim);
    struct head_rows              rows  = {.scales     = row_read(&loop->buffers[ROPE_SCALE], 0, 2 * head_dim, space),
                                           .sums       = space + 2 * head_dim,
                                           .in         = space + 4 * head_dim,
                                           .turned     = space + 5 * head_dim,
                                           .x          = space + 6 * head_dim,
                                           .normalised = space + 7 * head_dim};
    for (int64_t part = first; part < last; part++) {
        double *sums = part_sums(loop, part);
        memset(sums, 0, sizeof(double) * 2 * (size_t)head_dim);
        for (int64_t token = tokens * part / HOST_PARTS; token < tokens * (part + 1) / HOST_PARTS; token++) {
            memset(rows.sums, 0, sizeof(float) * 2 * (size_t)head_dim);
            for (int64_t head = 0; head < shape->heads + 2 * shape->kv_heads; head++) {
                backward_head(loop, token, head, &rows);
            }
            for (int64_t i = 0; i < 2 * head_dim; i++) {
                sums[i] += (double)rows.sums[i];
            }
        }
    }
}

static void finish_columns(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop *loop     = context;
    int64_t            head_dim = loop->op->shape.attention.head_dim;
    float             *sums     = host_scratch(loop, thread, BACKWARD_ROWS * head_dim);
    for (int64_t i = first; i < last; i++) {
        double total = 0;
        for (int64_t part = 0; part < HOST_PARTS; part++) {
            total += part_sums(loop, part)[i];
        }
        sums[i - first] = (float)total;
    }
    row_store(&loop->buffers[ROPE_SCALE_GRADIENT], first, last - first, sums, loop->op->accumulates);
}

void rope_norm_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_parts, HOST_PARTS);
    host_run_loop(backend, op, buffers, finish_columns, 2 * op->shape.attention.head_dim);
}
