// SPDX-License-Identifier: MIT
// Launches the cross entropy and loss sum kernels.
#include "internal.h"
#include "kernels/cross_entropy.h"
#include "kernels/elements.h"

void device_logit_statistics(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    struct kernel_target     target = device_target(backend, op);
    DEVICE_CHECK(
        kernel_logit_statistics(&(struct logit_statistics_args){.logits     = buffers[LOGIT_STATISTICS_LOGITS].data,
                                                                .targets    = buffers[LOGIT_STATISTICS_TARGETS].data,
                                                                .out        = buffers[LOGIT_STATISTICS_OUT].data,
                                                                .rows       = shape->rows,
                                                                .columns    = shape->columns,
                                                                .valid      = shape->valid_columns,
                                                                .first      = shape->first,
                                                                .multiplier = shape->multiplier,
                                                                .type       = buffers[LOGIT_STATISTICS_LOGITS].format},
                                &target));
}

void device_cross_entropy(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    struct kernel_target     target = device_target(backend, op);
    DEVICE_CHECK(kernel_cross_entropy(&(struct cross_entropy_args){.logits     = buffers[CROSS_ENTROPY_LOGITS].data,
                                                                   .targets    = buffers[CROSS_ENTROPY_TARGETS].data,
                                                                   .losses     = buffers[CROSS_ENTROPY_LOSS].data,
                                                                   .statistics = buffers[CROSS_ENTROPY_STATISTICS].data,
                                                                   .rows       = shape->rows,
                                                                   .columns    = shape->columns,
                                                                   .valid      = shape->valid_columns,
                                                                   .first      = shape->first,
                                                                   .parts      = shape->parts,
                                                                   .scale      = shape->scale,
                                                                   .multiplier = shape->multiplier,
                                                                   .type       = buffers[CROSS_ENTROPY_LOGITS].format},
                                      &target));
}

void device_loss_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_scaled_sum(&(struct scaled_sum_args){.in          = buffers[LOSS_SUM_IN].data,
                                                             .out         = buffers[LOSS_SUM_OUT].data,
                                                             .elements    = op->shape.rows.rows,
                                                             .factor      = op->shape.rows.scale,
                                                             .accumulates = op->accumulates},
                                   &target));
}
