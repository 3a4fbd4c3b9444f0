// SPDX-License-Identifier: MIT
// Launches the RoPE kernels, with or without q and k norms.
#include "gswbench/arena.h"
#include "internal.h"
#include "kernels/rope_norm.h"

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
    args.table                  = buffers[ROPE_TABLE].data;
    args.packed                 = buffers[ROPE_PACKED].data;
    args.query                  = buffers[ROPE_QUERY].data;
    args.key_value              = buffers[ROPE_KEY_VALUE].data;
    args.type                   = device_type(op, buffers, ROPE_PACKED, ROPE_KEY_VALUE);
    if (buffers[ROPE_SCALE].data == NULL) {
        DEVICE_CHECK(kernel_rope(&args, &target));
        return;
    }
    device_type(op, buffers, ROPE_PACKED, ROPE_SCALE);
    DEVICE_CHECK(kernel_rope_norm(&(struct rope_norm_args){.rope                = args,
                                                           .scale               = buffers[ROPE_SCALE].data,
                                                           .in                  = buffers[ROPE_PACKED_IN].data,
                                                           .scale_gradient      = buffers[ROPE_SCALE_GRADIENT].data,
                                                           .scratch             = device_of(backend)->scratch,
                                                           .epsilon             = op->shape.attention.epsilon,
                                                           .accumulates         = op->accumulates,
                                                           .scale_gradient_type = buffers[ROPE_SCALE_GRADIENT].format},
                                  &target));
}

void device_rope_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}

void device_rope_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    run_rope(backend, op, buffers);
}
