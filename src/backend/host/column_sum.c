// SPDX-License-Identifier: MIT
// Column sums (bias gradient). Threads share the columns; each column is added in row order, in double.
#include <string.h>

#include "internal.h"

// Scratch per thread: a row, and the sums in double.
int64_t host_column_sum_floats(const struct op *op, int threads)
{
    (void)threads;
    return 3 * op->shape.rows.columns;
}

static void sum_columns(void *context, int64_t first, int64_t last, int thread)
{
    const struct loop       *loop  = context;
    const struct rows_shape *shape = &loop->op->shape.rows;
    int64_t                  count = last - first;
    double                  *sums  = (double *)(void *)host_scratch(loop, thread, host_column_sum_floats(loop->op, 1));
    float                   *space = (float *)(sums + count);
    memset(sums, 0, (size_t)count * sizeof(*sums));
    for (int64_t row = 0; row < shape->rows; row++) {
        const float *values = row_read(&loop->buffers[COLUMN_SUM_IN], row * shape->columns + first, count, space);
        for (int64_t i = 0; i < count; i++) {
            sums[i] += (double)values[i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        space[i] = (float)sums[i];
    }
    row_store(&loop->buffers[COLUMN_SUM_OUT], first, count, space, loop->op->accumulates);
}

void host_column_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, sum_columns, op->shape.rows.columns);
}
