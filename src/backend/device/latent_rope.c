// SPDX-License-Identifier: MIT
// Launches the RoPE kernel of multi-head latent attention and the column split.
#include "kernels/latent_rope.h"

#include "internal.h"
#include "kernels/split.h"

static void run_rope(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape  = &op->shape.attention;
    struct kernel_target          target = device_target(backend, op);
    device_type(op, buffers, LATENT_ROPE_QUERY_UP, LATENT_ROPE_QUERY);
    device_type(op, buffers, LATENT_ROPE_SHARED_KEY, LATENT_ROPE_QUERY);
    device_type(op, buffers, LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_QUERY);
    DEVICE_CHECK(kernel_latent_rope(
        &(struct latent_rope_args){.table        = buffers[LATENT_ROPE_TABLE].data,
                                   .query_up     = buffers[LATENT_ROPE_QUERY_UP].data,
                                   .key_value_up = buffers[LATENT_ROPE_KEY_VALUE_UP].data,
                                   .shared_key   = buffers[LATENT_ROPE_SHARED_KEY].data,
                                   .query        = buffers[LATENT_ROPE_QUERY].data,
                                   .key_value    = buffers[LATENT_ROPE_KEY_VALUE].data,
                                   .tokens       = shape->batch * shape->sequence,
                                   .sequence     = shape->sequence,
                                   .heads        = shape->heads,
                                   .head_dim     = shape->head_dim,
                                   .rotary       = shape->rotary,
                                   .value_dim    = attention_value_dim(shape),
                                   .is_backward  = op->kind == OP_LATENT_ROPE_BACKWARD,
                                   .type         = device_type(op, buffers, LATENT_ROPE_KEY_VALUE, LATENT_ROPE_QUERY)},
        &target));
}

void device_latent_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}

void device_latent_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}

static void run_split(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS], int whole,
                      int first, int rest)
{
    struct kernel_target target = device_target(backend, op);
    device_type(op, buffers, first, rest);
    DEVICE_CHECK(kernel_split(&(struct split_args){.whole         = buffers[whole].data,
                                                   .first         = buffers[first].data,
                                                   .rest          = buffers[rest].data,
                                                   .rows          = op->shape.rows.rows,
                                                   .columns       = op->shape.rows.columns,
                                                   .first_columns = op->shape.rows.valid_columns,
                                                   .joins         = op->kind == OP_JOIN,
                                                   .type          = device_type(op, buffers, whole, first)},
                              &target));
}

void device_split(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_split(backend, op, buffers, SPLIT_IN, SPLIT_FIRST, SPLIT_REST);
}

void device_join(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_split(backend, op, buffers, JOIN_OUT, JOIN_FIRST, JOIN_REST);
}
