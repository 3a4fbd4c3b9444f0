// SPDX-License-Identifier: MIT
// Ops that move parts of rows. Regroup permutes the parts of rows; split divides the columns of a matrix in two; join
// is the inverse of split.
#include "internal.h"

static void move_parts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct rows_shape *shape = &loop->op->shape.rows;
    int64_t                  width = shape->columns / shape->parts;
    for (int64_t item = first; item < last; item++) {
        int64_t to = regroup_place(shape, item / shape->parts, item % shape->parts);
        row_copy(&loop->buffers[REGROUP_OUT], to * width, &loop->buffers[REGROUP_IN], item * width, width);
    }
}

static void run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, move_parts, op->shape.rows.rows * op->shape.rows.parts);
}

const struct host_op host_regroup = {.run = run};

static void move_columns(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    (void)thread;
    const struct rows_shape *shape  = &loop->op->shape.rows;
    bool                     splits = loop->op->kind == OP_SPLIT;
    int                      whole  = splits ? SPLIT_IN : JOIN_OUT,
        part[]                      = {splits ? SPLIT_FIRST : JOIN_FIRST, splits ? SPLIT_REST : JOIN_REST};
    for (int64_t row = first; row < last; row++) {
        int64_t at = row * shape->columns;
        for (int i = 0; i < 2; i++) {
            int64_t width = i == 0 ? shape->valid_columns : shape->columns - shape->valid_columns;
            row_copy(&loop->buffers[splits ? part[i] : whole], splits ? row * width : at,
                     &loop->buffers[splits ? whole : part[i]], splits ? at : row * width, width);
            at += width;
        }
    }
}

const struct host_op host_split = {.body = move_columns, .count = host_count_rows};

const struct host_op host_join = {.body = move_columns, .count = host_count_rows};
