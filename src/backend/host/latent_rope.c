// SPDX-License-Identifier: MIT
// RoPE of multi-head latent attention (MLA): rotates the last elements of each query head, and one key shared by all
// heads. Also splits columns in two and joins them.
#include "rope.h"

// Scratch per thread: rotary rows in and out, and their sum over heads.
enum { LATENT_ROWS = 3 };

int64_t host_latent_rope_floats(const struct op *op, int threads)
{
    (void)threads;
    return LATENT_ROWS * op->shape.attention.rotary;
}

// Index of a token's head in each operand.
struct latent_place {
    int64_t query, up, key, value;    // up: in key_value_up; key and value: in key_value
};

static struct latent_place place_of(const struct attention_shape *shape, int64_t token, int64_t head)
{
    int64_t plain = shape->head_dim - shape->rotary, value = attention_value_dim(shape), row = token * shape->heads;
    int64_t pair = row * (shape->head_dim + value);
    return (struct latent_place){(row + head) * shape->head_dim, (row + head) * (plain + value),
                                 pair + head * shape->head_dim, pair + shape->heads * shape->head_dim + head * value};
}

static void rotate_part(const struct loop *loop, int to, int64_t to_at, int from, int64_t from_at, const float *angles,
                        float *space)
{
    struct attention_shape part = loop->op->shape.attention;
    part.head_dim               = part.rotary;
    float        direction      = loop->op->kind == OP_LATENT_ROPE_FORWARD ? 1.0f : -1.0f;
    const float *in             = row_read(&loop->buffers[from], from_at, part.rotary, space);
    float       *out            = row_open(&loop->buffers[to], to_at, space + part.rotary);
    rope_rotate(out, in, &part, angles, direction);
    row_close(&loop->buffers[to], to_at, part.rotary, out);
}

static void copy_part(const struct loop *loop, int to, int64_t to_at, int from, int64_t from_at, int64_t count)
{
    row_copy(&loop->buffers[to], to_at, &loop->buffers[from], from_at, count);
}

static void forward_tokens(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop            *loop  = context;
    const struct attention_shape *shape = &loop->op->shape.attention;
    float                        *space = host_scratch(loop, thread, host_latent_rope_floats(loop->op, 1));
    const float                  *table = loop->buffers[LATENT_ROPE_TABLE].data;
    int64_t rotary = shape->rotary, plain = shape->head_dim - rotary, value = attention_value_dim(shape);
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * rotary;
        for (int64_t head = 0; head < shape->heads; head++) {
            struct latent_place at = place_of(shape, token, head);
            copy_part(loop, LATENT_ROPE_QUERY, at.query, LATENT_ROPE_QUERY_UP, at.query, plain);
            rotate_part(loop, LATENT_ROPE_QUERY, at.query + plain, LATENT_ROPE_QUERY_UP, at.query + plain, angles,
                        space);
            copy_part(loop, LATENT_ROPE_KEY_VALUE, at.key, LATENT_ROPE_KEY_VALUE_UP, at.up, plain);
            rotate_part(loop, LATENT_ROPE_KEY_VALUE, at.key + plain, LATENT_ROPE_SHARED_KEY, token * rotary, angles,
                        space);
            copy_part(loop, LATENT_ROPE_KEY_VALUE, at.value, LATENT_ROPE_KEY_VALUE_UP, at.up + plain, value);
        }
    }
}

void host_latent_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, forward_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}

// Sums the shared key's gradient over heads before it rotates back once; rotation is linear.
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

static void backward_tokens(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop            *loop  = context;
    const struct attention_shape *shape = &loop->op->shape.attention;
    float                        *space = host_scratch(loop, thread, host_latent_rope_floats(loop->op, 1));
    const float                  *table = loop->buffers[LATENT_ROPE_TABLE].data;
    int64_t rotary = shape->rotary, plain = shape->head_dim - rotary, value = attention_value_dim(shape);
    for (int64_t token = first; token < last; token++) {
        const float *angles = table + token % shape->sequence * rotary;
        for (int64_t head = 0; head < shape->heads; head++) {
            struct latent_place at = place_of(shape, token, head);
            copy_part(loop, LATENT_ROPE_QUERY_UP, at.query, LATENT_ROPE_QUERY, at.query, plain);
            rotate_part(loop, LATENT_ROPE_QUERY_UP, at.query + plain, LATENT_ROPE_QUERY, at.query + plain, angles,
                        space);
            copy_part(loop, LATENT_ROPE_KEY_VALUE_UP, at.up, LATENT_ROPE_KEY_VALUE, at.key, plain);
            copy_part(loop, LATENT_ROPE_KEY_VALUE_UP, at.up + plain, LATENT_ROPE_KEY_VALUE, at.value, value);
        }
        sum_shared_key(loop, token, angles, space);
    }
}

void host_latent_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_tokens, op->shape.attention.batch * op->shape.attention.sequence);
}

static void move_rows(void *context, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct loop       *loop   = context;
    const struct rows_shape *shape  = &loop->op->shape.rows;
    bool                     splits = loop->op->kind == OP_SPLIT;
    int                      whole  = splits ? SPLIT_IN : JOIN_OUT,
        part[]                      = {splits ? SPLIT_FIRST : JOIN_FIRST, splits ? SPLIT_REST : JOIN_REST};
    for (int64_t row = first; row < last; row++) {
        int64_t at = row * shape->columns;
        for (int i = 0; i < 2; i++) {
            int64_t width = i == 0 ? shape->valid_columns : shape->columns - shape->valid_columns;
            copy_part(loop, splits ? part[i] : whole, splits ? row * width : at, splits ? whole : part[i],
                      splits ? at : row * width, width);
            at += width;
        }
    }
}

void host_split(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, move_rows, op->shape.rows.rows);
}

void host_join(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, move_rows, op->shape.rows.rows);
}
