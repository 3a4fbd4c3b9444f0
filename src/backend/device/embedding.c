// SPDX-License-Identifier: MIT
// Launches the embedding kernels: gather of table rows, and scatter of their gradients.
#include "internal.h"
#include "kernels/gather.h"
#include "kernels/scatter.h"

void device_embedding_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    struct kernel_target     target = device_target(backend, op);
    DEVICE_CHECK(kernel_gather(&(struct gather_args){.index       = buffers[EMBEDDING_TOKENS].data,
                                                     .in          = buffers[EMBEDDING_TABLE].data,
                                                     .out         = buffers[EMBEDDING_OUT].data,
                                                     .rows        = shape->rows,
                                                     .columns     = shape->columns,
                                                     .first       = shape->first,
                                                     .count       = shape->valid_columns,
                                                     .divisor     = 1,
                                                     .multiplier  = shape->multiplier,
                                                     .accumulates = op->accumulates,
                                                     .type = device_type(op, buffers, EMBEDDING_TABLE, EMBEDDING_OUT)},
                               &target));
}

int64_t device_embedding_backward_scratch(const struct op *op, const struct kernel_target *target)
{
    (void)target;
    return scatter_scratch_bytes(op->shape.rows.rows);
}

void device_embedding_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape  = &op->shape.rows;
    const struct device     *device = device_of(backend);
    struct kernel_target     target = device_target(backend, op);
    DEVICE_CHECK(kernel_scatter(&(struct scatter_args){.tokens      = buffers[EMBEDDING_GRADIENT_TOKENS].data,
                                                       .gradient    = buffers[EMBEDDING_GRADIENT_OUT].data,
                                                       .table       = buffers[EMBEDDING_GRADIENT_TABLE].data,
                                                       .scratch     = device->scratch,
                                                       .rows        = shape->rows,
                                                       .columns     = shape->columns,
                                                       .table_rows  = shape->valid_columns,
                                                       .first       = shape->first,
                                                       .multiplier  = shape->multiplier,
                                                       .accumulates = op->accumulates,
                                                       .activation  = buffers[EMBEDDING_GRADIENT_OUT].format,
                                                       .table_type  = buffers[EMBEDDING_GRADIENT_TABLE].format},
                                &target));
}
