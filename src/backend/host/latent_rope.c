// SPDX-License-Identifier: MIT
// Computes RoPE of multi-head latent attention (MLA): rotates the last elements of each query head, and the key part
// that all heads share.
#include "internal.h"

// Scratch per thread, in rows of rotary elements: input, output, and the sum over heads.
enum { LATENT_ROWS = 3 };

static int64_t floats(const struct op *op)
{
    return LATENT_ROWS * op->shape.attention.rotary;
}

// Index of the first element of a token's head in each operand.
struct latent_place {
    int64_t query, up, key, value;    // query: in QUERY_UP and QUERY; up: in KEY_VALUE_UP; key, value: in KEY_VALUE
};

static struct latent_place place_of(const struct attention_shape *shape, int64_t token, int64_t head)
{
    int64_t plain = shape->head_dim - shape->rotary, value = attention_value_dim(shape), row = token * shape->heads;
    int64_t pair = row * (shape->head_dim + value);
    return (struct latent_place){(row + head) * shape->head_dim, (row + head) * (plain + value),
                                 pair + head * shape->head_dim, pair + shape->heads * shape->head_dim + head * value};
}

// A part of an operand: its slot and the index of the first element.
struct part {
    int     slot;
    int64_t at;
};

// Rotates the rotary part of a head from an input of the forward op (up: QUERY_UP or SHARED_KEY) to an output (out:
// QUERY or KEY_VALUE). Backward, rotates its gradient back from out to up.
static void rotate_part(const struct loop *loop, struct part up, struct part out, const float *angles, float *space)
{
    bool                   forward = loop->op->kind == OP_LATENT_ROPE_FORWARD;
    struct attention_shape part    = loop->op->shape.attention;
    part.head_dim                  = part.rotary;
    struct part          source = forward ? up : out, target = forward ? out : up;
    const struct buffer *from = &loop->buffers[source.slot], *to = &loop->buffers[target.slot];
    const float         *in     = row_read(from, source.at, part.rotary, space);
    float               *values = row_open(to, target.at, space + part.rotary);
    rope_rotate(values, in, &part, angles, forward ? 1.0f : -1.0f);
    row_close(to, target.at, part.rotary, values);
}

static void copy_part(const struct loop *loop, struct part up, struct part out, int64_t count)
{
    const struct buffer *upper = &loop->buffers[up.slot], *operand = &loop->buffers[out.slot];
    if (loop->op->kind == OP_LATENT_ROPE_FORWARD) {
        row_copy(operand, out.at, upper, up.at, count);
    } else {
        row_copy(upper, up.at, operand, out.at, count);
    }
}

// Sums the gradient of the shared key over heads and then rotates the sum back. The order does not matter, because
// rotation is linear.
static void sum_shared_key(const struct loop *loop, int64_t token, const float *angles, float *space)
{
    const struct attention_shape *shape  = &loop->op->shape.attention;
    const struct buffer          *shared = &loop->buffers[LATENT_ROPE_SHARED_KEY];
    struct attention_shape        part   = *shape;
    float                        *sums   = space + 2 * shape->rotary;
    part.head_dim                        = shape->rotary;
    for (int64_t head = 0; head < shape->heads; head++) {
        int64_t      at = place_of(shape, token, head).key + shape->head_dim - shape->rotary;
        const float *in = row_read(&loop->buffers[LATENT_ROPE_KEY_VALUE], at, shape->rotary, space);
        for (int64_t i = 0; i < shape->rotary; i++) {
            sums[i] = (head > 0 ? sums[i] : 0.0f) + in[i];
        }
    }
    float *out = row_open(shared, token * shape->rotary, space);
    rope_rotate(out, sums, &part, angles, -1.0f);
    row_close(shared, token * shape->rotary, shape->rotary, out);
}

static void move_tokens(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct attention_shape *shape = &loop->op->shape.attention;
    float                        *space = host_space(loop, thread);
    const float                  *table = loop->buffers[LATENT_ROPE_TABLE].data;
    int64_t rotary = shape->rotary, plain = shape->head_dim - rotary, value = attention_value_dim(shape);
    bool    forward = loop->op->kind == OP_LATENT_ROPE_FORWARD;
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * rotary;
        for (int64_t head = 0; head < shape->heads; head++) {
            struct latent_place at = place_of(shape, token, head);
            copy_part(loop, (struct part){LATENT_ROPE_QUERY_UP, at.query}, (struct part){LATENT_ROPE_QUERY, at.query},
                      plain);
            rotate_part(loop, (struct part){LATENT_ROPE_QUERY_UP, at.query + plain},
                        (struct part){LATENT_ROPE_QUERY, at.query + plain}, angles, space);
            copy_part(loop, (struct part){LATENT_ROPE_KEY_VALUE_UP, at.up},
                      (struct part){LATENT_ROPE_KEY_VALUE, at.key}, plain);
            copy_part(loop, (struct part){LATENT_ROPE_KEY_VALUE_UP, at.up + plain},
                      (struct part){LATENT_ROPE_KEY_VALUE, at.value}, value);
            if (forward) {
                rotate_part(loop, (struct part){LATENT_ROPE_SHARED_KEY, token * rotary},
                            (struct part){LATENT_ROPE_KEY_VALUE, at.key + plain}, angles, space);
            }
        }
        if (!forward) {
            sum_shared_key(loop, token, angles, space);
        }
    }
}

const struct host_op host_latent_rope_forward  = {.body = move_tokens, .count = host_count_tokens, .each = floats};
const struct host_op host_latent_rope_backward = {.body = move_tokens, .count = host_count_tokens, .each = floats};
