// SPDX-License-Identifier: MIT
// Launches the column sum kernels.
#include "internal.h"
#include "kernels/column_sum.h"

int64_t device_column_sum_scratch(const struct op *op, const struct kernel_target *target)
{
    return kernel_column_sum_scratch_bytes(op->shape.rows.rows, op->shape.rows.columns, target);
}

void device_column_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_column_sum(&(struct column_sum_args){.in          = buffers[COLUMN_SUM_IN].data,
                                                             .out         = buffers[COLUMN_SUM_OUT].data,
                                                             .scratch     = device_of(backend)->scratch,
                                                             .rows        = op->shape.rows.rows,
                                                             .columns     = op->shape.rows.columns,
                                                             .accumulates = op->accumulates,
                                                             .in_type     = buffers[COLUMN_SUM_IN].format,
                                                             .out_type    = buffers[COLUMN_SUM_OUT].format},
                                   &target));
}
