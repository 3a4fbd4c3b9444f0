// SPDX-License-Identifier: MIT
// Launches the built-in kernels of attention and attention sinks.
#include "internal.h"
#include "kernels/attention.h"

status device_attention_check(const struct device *device, const struct op *op)
{
    int64_t value_dim = attention_value_dim(&op->shape.attention);
    int64_t head_dim  = op->shape.attention.head_dim > value_dim ? op->shape.attention.head_dim : value_dim;
    if (head_dim > ATTENTION_HEAD_MAX) {
        return fail("[model] head_dim = %lld: gswbench's kernels support up to %d", (long long)head_dim,
                    (int)ATTENTION_HEAD_MAX);
    }
    if ((op->shape.attention.head_dim % 8 == 0) != (value_dim % 8 == 0)) {
        return fail("[model] value_dim = %lld: gswbench's kernels need key and value heads that are both multiples of "
                    "8, or neither",
                    (long long)value_dim);
    }
    int needed =
        kernel_attention_shared_bytes(op->shape.attention.head_dim, value_dim, op->kind == OP_ATTENTION_BACKWARD);
    if (needed > device->shared_bytes) {
        return fail("[model] head_dim = %lld: gswbench's kernels need %d KiB of shared memory per block, but this "
                    "device has %d",
                    (long long)head_dim, (needed + 1023) / 1024, device->shared_bytes / 1024);
    }
    return OK;
}

int64_t device_attention_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    const struct attention_shape *shape = &op->shape.attention;
    return shape->batch * shape->heads * shape->sequence * (int64_t)sizeof(float);
}

static struct attention_kernel_shape kernel_shape(const struct attention_shape *shape)
{
    return (struct attention_kernel_shape){.batch     = shape->batch,
                                           .sequence  = shape->sequence,
                                           .keys      = shape->earlier + shape->sequence,
                                           .heads     = shape->heads,
                                           .kv_heads  = shape->kv_heads,
                                           .head_dim  = shape->head_dim,
                                           .value_dim = attention_value_dim(shape),
                                           .scale     = shape->scale,
                                           .is_causal = shape->causal,
                                           .window    = shape->causal ? shape->window : 0};
}

static struct attention_kernel_slopes kernel_slopes(const struct attention_shape *shape)
{
    return (struct attention_kernel_slopes){(int32_t)shape->sloped_heads, (int32_t)shape->first_head,
                                            (int32_t)shape->distance};
}

void device_attention_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    DEVICE_LAUNCH(attention_forward, .shape = kernel_shape(&op->shape.attention), .query = DATA(ATTENTION_QUERY),
                  .key_value = DATA(ATTENTION_KEY_VALUE), .out = DATA(ATTENTION_OUT),
                  .statistics = DATA(ATTENTION_STATISTICS), .out_type = buffers[ATTENTION_OUT].format,
                  .slopes = kernel_slopes(&op->shape.attention));
}

void device_attention_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct device *device = device_of(backend);
    DEVICE_LAUNCH(attention_backward, .shape = kernel_shape(&op->shape.attention),
                  .out_gradient = DATA(ATTENTION_GRADIENT_OUT), .query = DATA(ATTENTION_GRADIENT_QUERY_IN),
                  .key_value = DATA(ATTENTION_GRADIENT_KEY_VALUE_IN), .out = DATA(ATTENTION_GRADIENT_OUT_IN),
                  .statistics = DATA(ATTENTION_GRADIENT_STATISTICS), .query_gradient = DATA(ATTENTION_GRADIENT_QUERY),
                  .key_value_gradient = DATA(ATTENTION_GRADIENT_KEY_VALUE), .row_sums = device->scratch,
                  .adds_query = op->shape.attention.adds_query, .adds_key_value = op->accumulates,
                  .query_gradient_type     = buffers[ATTENTION_GRADIENT_QUERY].format,
                  .key_value_gradient_type = buffers[ATTENTION_GRADIENT_KEY_VALUE].format,
                  .slopes                  = kernel_slopes(&op->shape.attention));
}

void device_attention_merge(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape = &op->shape.attention;
    DEVICE_LAUNCH(attention_merge, .out = DATA(ATTENTION_MERGE_OUT), .statistics = DATA(ATTENTION_MERGE_STATISTICS),
                  .part = DATA(ATTENTION_MERGE_PART), .part_statistics = DATA(ATTENTION_MERGE_PART_STATISTICS),
                  .batch = shape->batch, .sequence = shape->sequence, .heads = shape->heads,
                  .head_dim = attention_value_dim(shape));
}

void device_sink_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape = &op->shape.attention;
    DEVICE_LAUNCH_WITH(sink_forward, sink_args, .sinks = DATA(SINK_SINKS), .out = DATA(SINK_OUT),
                       .statistics = DATA(SINK_STATISTICS), .batch = shape->batch, .sequence = shape->sequence,
                       .heads = shape->heads, .head_dim = shape->head_dim, .type = DEVICE_TYPE(SINK_SINKS, SINK_OUT));
}

int64_t device_sink_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    const struct attention_shape *shape = &op->shape.attention;
    return kernel_sink_backward_scratch_bytes(shape->batch * shape->sequence, shape->heads, target);
}

void device_sink_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape = &op->shape.attention;
    DEVICE_LAUNCH_WITH(sink_backward, sink_args, .sinks = DATA(SINK_GRADIENT_SINKS_IN),
                       .out = DATA(SINK_GRADIENT_OUT_IN), .gradient = DATA(SINK_GRADIENT_OUT),
                       .statistics = DATA(SINK_GRADIENT_STATISTICS), .to = DATA(SINK_GRADIENT_SINKS),
                       .scratch = device_of(backend)->scratch, .batch = shape->batch, .sequence = shape->sequence,
                       .heads = shape->heads, .head_dim = shape->head_dim, .accumulates = op->accumulates,
                       .type    = DEVICE_TYPE(SINK_GRADIENT_OUT, SINK_GRADIENT_OUT_IN, SINK_GRADIENT_SINKS_IN),
                       .to_type = buffers[SINK_GRADIENT_SINKS].format);
}
