// SPDX-License-Identifier: MIT
// Rope on the device.
#include "internal.h"
#include "kernels/rope.h"

static void run_rope(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape  = &op->shape.attention;
    struct kernel_target          target = device_target(backend, op);
    DEVICE_CHECK(kernel_rope(&(struct rope_args){.table       = buffers[ROPE_TABLE].data,
                                                 .packed      = buffers[ROPE_PACKED].data,
                                                 .query       = buffers[ROPE_QUERY].data,
                                                 .key_value   = buffers[ROPE_KEY_VALUE].data,
                                                 .tokens      = shape->batch * shape->sequence,
                                                 .sequence    = shape->sequence,
                                                 .heads       = shape->heads,
                                                 .kv_heads    = shape->kv_heads,
                                                 .head_dim    = shape->head_dim,
                                                 .rotary      = shape->rotary,
                                                 .is_backward = op->kind == OP_ROPE_BACKWARD,
                                                 .type        = device_type(op, buffers, ROPE_PACKED, ROPE_KEY_VALUE)},
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
