// SPDX-License-Identifier: MIT
// RoPE: splits packed q, k, v and rotates q and k, after an optional RMS norm of each head. The backward pass rotates
// back and packs; rope_norm.c has the backward pass with norms.
#include "rope.h"

#include <math.h>

#include "gswbench/arithmetic.h"

// Scratch per thread: a head in, out and normalised, and the norm weights of q and k.
enum { ROPE_ROWS = 5 };

int64_t host_rope_floats(const struct op *op, int threads)
{
    (void)threads;
    return ROPE_ROWS * op->shape.attention.head_dim;
}

void rope_rotate(float *out, const float *in, const struct attention_shape *shape, const float *table, float direction)
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

int64_t rope_split_place(const struct attention_shape *shape, int64_t token, int64_t head)
{
    int64_t place =
        head < shape->heads ? token * shape->heads + head : token * 2 * shape->kv_heads + (head - shape->heads);
    return place * shape->head_dim;
}

float rope_normalise(float *out, const float *in, const struct attention_shape *shape)
{
    double mean    = row_dot(in, in, shape->head_dim) / (double)shape->head_dim;
    float  inverse = (float)(1 / sqrt(mean + (double)shape->epsilon));
    for (int64_t i = 0; i < shape->head_dim; i++) {
        out[i] = in[i] * inverse;
    }
    return inverse;
}

static void rotate_tokens(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop            *loop    = context;
    const struct attention_shape *shape   = &loop->op->shape.attention;
    bool                          forward = loop->op->kind == OP_ROPE_FORWARD;
    bool                          norms   = forward && loop->buffers[ROPE_SCALE].data != NULL;
    const struct buffer          *packed  = &loop->buffers[ROPE_PACKED];
    const float                  *table   = loop->buffers[ROPE_TABLE].data;
    int64_t                       heads = shape->heads + 2 * shape->kv_heads, head_dim = shape->head_dim;
    float                        *space  = host_scratch(loop, thread, host_rope_floats(loop->op, 1));
    float                        *normed = space + 2 * head_dim;
    const float *scales = norms ? row_read(&loop->buffers[ROPE_SCALE], 0, 2 * head_dim, space + 3 * head_dim) : NULL;
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * shape->rotary;
        for (int64_t head = 0; head < heads; head++) {
            const struct buffer *split     = &loop->buffers[head < shape->heads ? ROPE_QUERY : ROPE_KEY_VALUE];
            int64_t              packed_at = (token * heads + head) * head_dim;
            int64_t              split_at  = rope_split_place(shape, token, head);
            const struct buffer *from = forward ? packed : split, *to = forward ? split : packed;
            int64_t              from_at = forward ? packed_at : split_at, to_at = forward ? split_at : packed_at;
            if (head >= shape->heads + shape->kv_heads || (shape->rotary == 0 && !norms)) {
                row_copy(to, to_at, from, from_at, head_dim);
                continue;
            }
            const float *in  = row_read(from, from_at, head_dim, space);
            float       *out = row_open(to, to_at, space + head_dim);
            if (norms) {
                const float *scale = scales + (head < shape->heads ? 0 : head_dim);
                rope_normalise(normed, in, shape);
                for (int64_t i = 0; i < head_dim; i++) {
                    normed[i] *= scale[i];
                }
                in = normed;
            }
            rope_rotate(out, in, shape, angles, forward ? 1.0f : -1.0f);
            row_close(to, to_at, head_dim, out);
        }
    }
}

void host_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, rotate_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}

void host_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    if (buffers[ROPE_SCALE].data != NULL) {
        rope_norm_backward(backend, op, buffers);
        return;
    }
    host_run_loop(backend, op, buffers, rotate_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}
