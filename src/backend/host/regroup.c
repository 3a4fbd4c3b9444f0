// SPDX-License-Identifier: MIT
// Regroup: permutes rows and their parts.
#include "internal.h"

static void move_rows(void *context, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct loop       *loop  = context;
    const struct rows_shape *shape = &loop->op->shape.rows;
    int64_t                  width = shape->columns / shape->parts;
    for (int64_t item = first; item < last; item++) {
        int64_t to = regroup_place(shape, item / shape->parts, item % shape->parts);
        row_copy(&loop->buffers[REGROUP_OUT], to * width, &loop->buffers[REGROUP_IN], item * width, width);
    }
}

void host_regroup(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, move_rows, op->shape.rows.rows * op->shape.rows.parts);
}
