// SPDX-License-Identifier: MIT
// Launches the attention sink kernels.
#include "internal.h"
#include "kernels/sink.h"

static struct sink_args args_of(const struct op *op)
{
    const struct attention_shape *shape = &op->shape.attention;
    return (struct sink_args){.batch       = shape->batch,
                              .sequence    = shape->sequence,
                              .heads       = shape->heads,
                              .head_dim    = shape->head_dim,
                              .accumulates = op->accumulates};
}

void device_sink_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    struct sink_args     args   = args_of(op);
    args.sinks                  = buffers[SINK_SINKS].data;
    args.out                    = buffers[SINK_OUT].data;
    args.statistics             = buffers[SINK_STATISTICS].data;
    args.type                   = device_type(op, buffers, SINK_SINKS, SINK_OUT);
    DEVICE_CHECK(kernel_sink_forward(&args, &target));
}

int64_t device_sink_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    const struct attention_shape *shape = &op->shape.attention;
    return kernel_sink_backward_scratch_bytes(shape->batch * shape->sequence, shape->heads, target);
}

void device_sink_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    struct sink_args     args   = args_of(op);
    device_type(op, buffers, SINK_GRADIENT_SINKS, SINK_GRADIENT_OUT_IN);
    args.sinks      = buffers[SINK_GRADIENT_SINKS].data;
    args.out        = buffers[SINK_GRADIENT_OUT_IN].data;
    args.gradient   = buffers[SINK_GRADIENT_OUT].data;
    args.statistics = buffers[SINK_GRADIENT_STATISTICS].data;
    args.to         = buffers[SINK_GRADIENT_SINK].data;
    args.scratch    = device_of(backend)->scratch;
    args.type       = device_type(op, buffers, SINK_GRADIENT_OUT, SINK_GRADIENT_OUT_IN);
    args.to_type    = buffers[SINK_GRADIENT_SINK].format;
    DEVICE_CHECK(kernel_sink_backward(&args, &target));
}
