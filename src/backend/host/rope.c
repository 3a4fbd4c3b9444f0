// SPDX-License-Identifier: MIT
// Computes RoPE: splits packed q, k, v, and rotates q and k, after an optional RMS norm of each head. The backward pass
// rotates back and packs. With norms it also computes the gradients of their weights.
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

// Scratch per thread, in heads: input, output, normalised input, and the norm weights of q and k.
enum { ROPE_ROWS = 5 };

static int64_t floats(const struct op *op)
{
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

// Returns the index of a head's first element in the operand QUERY or KEY_VALUE. head: its number in the packed row.
static int64_t split_place(const struct attention_shape *shape, int64_t token, int64_t head)
{
    int64_t place =
        head < shape->heads ? token * shape->heads + head : token * 2 * shape->kv_heads + (head - shape->heads);
    return place * shape->head_dim;
}

// Divides a head by its RMS, and returns 1 / rms.
static float normalise(float *out, const float *in, const struct attention_shape *shape)
{
    double mean    = row_dot(in, in, shape->head_dim) / (double)shape->head_dim;
    float  inverse = (float)(1 / sqrt(mean + (double)shape->epsilon));
    for (int64_t i = 0; i < shape->head_dim; i++) {
        out[i] = in[i] * inverse;
    }
    return inverse;
}

static void rotate_tokens(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct attention_shape *shape   = &loop->op->shape.attention;
    bool                          forward = loop->op->kind == OP_ROPE_FORWARD;
    bool                          norms   = forward && loop->buffers[ROPE_SCALE].data != NULL;
    const struct buffer          *packed  = &loop->buffers[ROPE_PACKED];
    const float                  *table   = loop->buffers[ROPE_TABLE].data;
    int64_t                       heads = shape->heads + 2 * shape->kv_heads, head_dim = shape->head_dim;
    float                        *space  = host_space(loop, thread);
    float                        *normed = space + 2 * head_dim;
    const float *scales = norms ? row_read(&loop->buffers[ROPE_SCALE], 0, 2 * head_dim, space + 3 * head_dim) : NULL;
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * shape->rotary;
        for (int64_t head = 0; head < heads; head++) {
            const struct buffer *split     = &loop->buffers[head < shape->heads ? ROPE_QUERY : ROPE_KEY_VALUE];
            int64_t              packed_at = (token * heads + head) * head_dim;
            int64_t              split_at  = split_place(shape, token, head);
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
                normalise(normed, in, shape);
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

const struct host_op host_rope_forward = {.body = rotate_tokens, .count = host_count_tokens, .each = floats};

// Returns the number of floats of scratch per thread: the rows of struct head_rows, or fewer without norms.
static int64_t backward_floats(const struct op *op)
{
    enum { BACKWARD_ROWS = 8 };
    return BACKWARD_ROWS * op->shape.attention.head_dim;
}

// Returns the number of floats of shared scratch: sums of weight gradients in double, [HOST_PARTS, 2, head_dim].
static int64_t part_floats(const struct op *op)
{
    return 2 * 2 * op->shape.attention.head_dim * HOST_PARTS;
}

struct head_rows {
    const float *scales;    // [2, head_dim]
    float       *sums;      // [2, head_dim]: weight gradients of one token
    float       *in, *rotated, *x, *normalised;
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
        row_copy(packed, at, split, split_place(shape, token, head), head_dim);
        return;
    }
    const float *in = row_read(split, split_place(shape, token, head), head_dim, rows->in);
    rope_rotate(rows->rotated, in, shape, angles, -1.0f);
    const float *x       = row_read(&loop->buffers[ROPE_PACKED_IN], at, head_dim, rows->x);
    float        inverse = normalise(rows->normalised, x, shape);
    for (int64_t i = 0; i < head_dim; i++) {
        rows->sums[of + i] += rows->rotated[i] * rows->normalised[i];
        rows->rotated[i] *= rows->scales[of + i];
    }
    float along = (float)(row_dot(rows->rotated, rows->normalised, head_dim) / (double)head_dim);
    for (int64_t i = 0; i < head_dim; i++) {
        rows->rotated[i] = inverse * (rows->rotated[i] - rows->normalised[i] * along);
    }
    row_close(packed, at, head_dim, rows->rotated);
}

static void backward_parts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct attention_shape *shape  = &loop->op->shape.attention;
    int64_t                       tokens = shape->batch * shape->sequence, head_dim = shape->head_dim;
    float                        *space = host_space(loop, thread);
    struct head_rows              rows  = {.scales     = row_read(&loop->buffers[ROPE_SCALE], 0, 2 * head_dim, space),
                                           .sums       = space + 2 * head_dim,
                                           .in         = space + 4 * head_dim,
                                           .rotated    = space + 5 * head_dim,
                                           .x          = space + 6 * head_dim,
                                           .normalised = space + 7 * head_dim};
    for (int64_t part = first; part < last; part++) {
        double *sums = host_part_sums(loop, part, 2 * head_dim);
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

static void finish_columns(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const double *sums = host_add_parts(loop, 2 * loop->op->shape.attention.head_dim, first, last);
    row_store_sums(&loop->buffers[ROPE_SCALE_GRADIENT], first, last - first, sums, host_space(loop, thread),
                   loop->op->accumulates);
}

static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    if (buffers[ROPE_SCALE].data == NULL) {
        host_run_loop(backend, op, buffers, rotate_tokens, host_count_tokens(op));
        return;
    }
    host_run_loop(backend, op, buffers, backward_parts, HOST_PARTS);
    if (buffers[ROPE_SCALE_GRADIENT].data != NULL) {
        host_run_loop(backend, op, buffers, finish_columns, 2 * op->shape.attention.head_dim);
    }
}

const struct host_op host_rope_backward = {.run = run_backward, .each = backward_floats, .shared = part_floats};
