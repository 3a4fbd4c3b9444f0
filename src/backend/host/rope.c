// SPDX-License-Identifier: MIT
// Rope: splits packed q, k, v and rotates q and k by their positions; the backward pass rotates back and packs.
#include "gswbench/arithmetic.h"
#include "internal.h"

// Scratch of a thread: a head in, a head out.
int64_t host_rope_floats(const struct op *op, int threads)
{
    (void)threads;
    return 2 * op->shape.attention.head_dim;
}

// One head of one token. direction is 1, or -1 to rotate back. table is the position's (cosine, sine) pairs.
static void rotate_head(float *out, const float *in, const struct attention_shape *shape, const float *table,
                        float direction)
{
    int64_t half = shape->rotary / 2;
    for (int64_t i = 0; i < half; i++) {
        float a = in[i], b = in[i + half];
        arithmetic_rotate(&a, &b, table[2 * i], direction * table[2 * i + 1]);
        out[i]        = a;
        out[i + half] = b;
    }
    for (int64_t i = 2 * half; i < shape->head_dim; i++) {
        out[i] = in[i];
    }
}

// Where a head of the packed row lies in QUERY or KEY_VALUE.
static int64_t split_place(const struct attention_shape *shape, int64_t token, int64_t head)
{
    int64_t place =
        head < shape->heads ? token * shape->heads + head : token * 2 * shape->kv_heads + (head - shape->heads);
    return place * shape->head_dim;
}

static void rotate_tokens(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop            *loop    = context;
    const struct attention_shape *shape   = &loop->op->shape.attention;
    bool                          forward = loop->op->kind == OP_ROPE_FORWARD;
    const struct buffer          *packed  = &loop->buffers[ROPE_PACKED];
    const float                  *table   = loop->buffers[ROPE_TABLE].data;
    float                        *space   = host_scratch(loop, thread, host_rope_floats(loop->op, 1));
    int64_t                       heads   = shape->heads + 2 * shape->kv_heads;
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * shape->rotary;
        for (int64_t head = 0; head < heads; head++) {
            const struct buffer *split     = &loop->buffers[head < shape->heads ? ROPE_QUERY : ROPE_KEY_VALUE];
            int64_t              packed_at = (token * heads + head) * shape->head_dim;
            int64_t              split_at  = split_place(shape, token, head);
            const struct buffer *from = forward ? packed : split, *to = forward ? split : packed;
            int64_t              from_at = forward ? packed_at : split_at, to_at = forward ? split_at : packed_at;
            if (head >= shape->heads + shape->kv_heads || shape->rotary == 0) {
                row_copy(to, to_at, from, from_at, shape->head_dim);
                continue;
            }
            const float *in  = row_read(from, from_at, shape->head_dim, space);
            float       *out = row_open(to, to_at, space + shape->head_dim);
            rotate_head(out, in, shape, angles, forward ? 1.0f : -1.0f);
            row_close(to, to_at, shape->head_dim, out);
        }
    }
}

void host_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, rotate_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}

void host_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, rotate_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}
