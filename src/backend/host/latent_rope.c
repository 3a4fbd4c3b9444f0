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

// Returns the index of the first element of a token's head in KEY_VALUE, which has all keys of a token, then all its
// values.
static int64_t key_at(const struct attention_shape *shape, int64_t token, int64_t head)
{
    return token * shape->heads * (shape->head_dim + attention_value_dim(shape)) + head * shape->head_dim;
}

// A part of a head: slot and first element in an input of the forward op (up) and in an output (out).
struct part {
    int     up;
    int64_t up_at;
    int     out;
    int64_t out_at, count;
    bool    rotates;
};

// Copies or rotates a part from `up` to `out`. Backward, moves its gradient back from `out` to `up`.
static void move_part(const struct loop *loop, const struct part *part, const float *angles, float *space)
{
    bool                 forward = loop->op->kind == OP_LATENT_ROPE_FORWARD;
    const struct buffer *from    = &loop->buffers[forward ? part->up : part->out];
    const struct buffer *to      = &loop->buffers[forward ? part->out : part->up];
    int64_t              from_at = forward ? part->up_at : part->out_at, to_at = forward ? part->out_at : part->up_at;
    if (!part->rotates) {
        row_copy(to, to_at, from, from_at, part->count);
        return;
    }
    struct attention_shape rotary = {.head_dim = part->count, .rotary = part->count};
    const float           *in     = row_read(from, from_at, part->count, space);
    float                 *values = row_open(to, to_at, space + part->count);
    rope_rotate(values, in, &rotary, angles, forward ? 1.0f : -1.0f);
    row_close(to, to_at, part->count, values);
}

// Sums the gradient of the shared key over heads and then rotates the sum back. The order does not matter, because
// rotation is linear.
static void sum_shared_key(const struct loop *loop, int64_t token, const float *angles, float *space)
{
    const struct attention_shape *shape  = &loop->op->shape.attention;
    const struct buffer          *shared = &loop->buffers[LATENT_ROPE_SHARED_KEY];
    struct attention_shape        part   = {.head_dim = shape->rotary, .rotary = shape->rotary};
    float                        *sums   = space + 2 * shape->rotary;
    for (int64_t head = 0; head < shape->heads; head++) {
        int64_t      at = key_at(shape, token, head) + shape->head_dim - shape->rotary;
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
            int64_t           query = (token * shape->heads + head) * shape->head_dim, key = key_at(shape, token, head);
            int64_t           up       = (token * shape->heads + head) * (plain + value);
            int64_t           value_at = key_at(shape, token, shape->heads) + head * value;
            const struct part parts[]  = {
                 {LATENT_ROPE_QUERY_UP, query, LATENT_ROPE_QUERY, query, plain, false},
                 {LATENT_ROPE_QUERY_UP, query + plain, LATENT_ROPE_QUERY, query + plain, rotary, true},
                 {LATENT_ROPE_KEY_VALUE_UP, up, LATENT_ROPE_KEY_VALUE, key, plain, false},
                 {LATENT_ROPE_KEY_VALUE_UP, up + plain, LATENT_ROPE_KEY_VALUE, value_at, value, false},
                 {LATENT_ROPE_SHARED_KEY, token * rotary, LATENT_ROPE_KEY_VALUE, key + plain, rotary, true},
            };
            int count = forward ? 5 : 4;    // backward: sum_shared_key handles the last part
            for (int i = 0; i < count; i++) {
                move_part(loop, &parts[i], angles, space);
            }
        }
        if (!forward) {
            sum_shared_key(loop, token, angles, space);
        }
    }
}

const struct host_op host_latent_rope_forward  = {.body = move_tokens, .count = host_count_tokens, .each = floats};
const struct host_op host_latent_rope_backward = {.body = move_tokens, .count = host_count_tokens, .each = floats};
