// SPDX-License-Identifier: MIT
// Launches the regroup kernel.
#include "kernels/regroup.h"

#include "internal.h"

void device_regroup(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = device_target(backend, op);
    DEVICE_CHECK(kernel_regroup(&(struct regroup_args){.in          = buffers[REGROUP_IN].data,
                                                       .out         = buffers[REGROUP_OUT].data,
                                                       .rows        = op->shape.rows.rows,
                                                       .parts       = op->shape.rows.parts,
                                                       .width       = op->shape.rows.columns / op->shape.rows.parts,
                                                       .folds_parts = op->shape.rows.variant == REGROUP_FOLDED_PARTS,
                                                       .folds_rows  = op->shape.rows.variant == REGROUP_FOLDED_ROWS,
                                                       .type = device_type(op, buffers, REGROUP_IN, REGROUP_OUT)},
                                &target));
}
