// SPDX-License-Identifier: MIT
// Launches the kernel that combines two attention parts.
#include "internal.h"
#include "kernels/attention_merge.h"

void device_attention_merge(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct attention_shape *shape  = &op->shape.attention;
    struct kernel_target          target = device_target(backend, op);
    DEVICE_CHECK(kernel_attention_merge(
        &(struct attention_merge_args){.out             = buffers[ATTENTION_MERGE_OUT].data,
                                       .statistics      = buffers[ATTENTION_MERGE_STATISTICS].data,
                                       .part            = buffers[ATTENTION_MERGE_PART].data,
                                       .part_statistics = buffers[ATTENTION_MERGE_PART_STATISTICS].data,
                                       .batch           = shape->batch,
                                       .sequence        = shape->sequence,
                                       .heads           = shape->heads,
                                       .head_dim        = attention_value_dim(shape)},
        &target));
}
