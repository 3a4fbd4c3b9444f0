// SPDX-License-Identifier: MIT
// Launches the RoPE kernels, and the kernels that split, join or transpose parts of rows.
#include "internal.h"
#include "kernels/rope.h"

static struct rope_args args_of(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (struct rope_args){.tokens      = shape->batch * shape->sequence,
                              .sequence    = shape->sequence,
                              .heads       = shape->heads,
                              .kv_heads    = shape->kv_heads,
                              .head_dim    = shape->head_dim,
                              .rotary      = shape->rotary,
                              .is_backward = op->kind == OP_ROPE_BACKWARD};
}

int64_t device_rope_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    struct rope_args args = args_of(op);
    return op->operand[ROPE_SCALE] >= 0 ? kernel_rope_norm_scratch_bytes(&args, target) : 0;
}

static void run_rope(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    struct rope_args     args   = args_of(op);
    args.table                  = DATA(ROPE_TABLE);
    args.packed                 = DATA(ROPE_PACKED);
    args.query                  = DATA(ROPE_QUERY);
    args.key_value              = DATA(ROPE_KEY_VALUE);
    args.type                   = DEVICE_TYPE(ROPE_PACKED, ROPE_KEY_VALUE);
    if (DATA(ROPE_SCALE) == NULL) {
        DEVICE_CHECK(kernel_rope(&args, &target));
        return;
    }
    DEVICE_TYPE(ROPE_PACKED, ROPE_SCALE);
    DEVICE_LAUNCH(rope_norm, .rope = args, .scale = DATA(ROPE_SCALE), .in = DATA(ROPE_PACKED_IN),
                  .scale_gradient = DATA(ROPE_SCALE_GRADIENT), .scratch = device_of(backend)->scratch,
                  .epsilon = op->shape.attention.epsilon, .accumulates = op->accumulates,
                  .scale_gradient_type = buffers[ROPE_SCALE_GRADIENT].format);
}

void device_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}

void device_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}

static void run_latent_rope(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape = &op->shape.attention;
    DEVICE_LAUNCH(latent_rope, .table = DATA(LATENT_ROPE_TABLE), .query_up = DATA(LATENT_ROPE_QUERY_UP),
                  .key_value_up = DATA(LATENT_ROPE_KEY_VALUE_UP), .shared_key = DATA(LATENT_ROPE_SHARED_KEY),
                  .query = DATA(LATENT_ROPE_QUERY), .key_value = DATA(LATENT_ROPE_KEY_VALUE),
                  .tokens = shape->batch * shape->sequence, .sequence = shape->sequence, .heads = shape->heads,
                  .head_dim = shape->head_dim, .rotary = shape->rotary, .value_dim = attention_value_dim(shape),
                  .is_backward = op->kind == OP_LATENT_ROPE_BACKWARD,
                  .type        = DEVICE_TYPE(LATENT_ROPE_QUERY, LATENT_ROPE_KEY_VALUE, LATENT_ROPE_QUERY_UP,
                                             LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_SHARED_KEY));
}

void device_latent_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_latent_rope(backend, op, buffers);
}

void device_latent_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_latent_rope(backend, op, buffers);
}

static void run_split(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS], int whole,
                      int first, int rest)
{
    DEVICE_LAUNCH(split, .whole = DATA(whole), .first = DATA(first), .rest = DATA(rest), .rows = op->shape.rows.rows,
                  .columns = op->shape.rows.columns, .first_columns = op->shape.rows.valid_columns,
                  .joins = op->kind == OP_JOIN, .type = DEVICE_TYPE(whole, first, rest));
}

void device_split(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_split(backend, op, buffers, SPLIT_IN, SPLIT_FIRST, SPLIT_REST);
}

void device_join(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_split(backend, op, buffers, JOIN_OUT, JOIN_FIRST, JOIN_REST);
}

void device_regroup(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(regroup, .in = DATA(REGROUP_IN), .out = DATA(REGROUP_OUT), .shape = op->shape.rows,
                  .type = DEVICE_TYPE(REGROUP_IN, REGROUP_OUT));
}
