// SPDX-License-Identifier: MIT
// Cross entropy with its gradient, and the sum of the losses.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"

int64_t host_cross_entropy_floats(const struct op *op, int threads)
{
    (void)threads;
    return op->shape.rows.columns;
}

// loss = log(sum of exp(x)) - x[target]; its gradient is softmax(x), less one at the target.
static void cross_entropy_rows(void *context, int64_t first, int64_t last, int thread)
{
    const struct work       *work    = context;
    const struct rows_shape *shape   = &work->op->shape.rows;
    const struct buffer     *logits  = &work->buffers[CROSS_ENTROPY_LOGITS];
    const int32_t           *targets = work->buffers[CROSS_ENTROPY_TARGETS].data;
    float                   *losses  = work->buffers[CROSS_ENTROPY_LOSS].data;
    int64_t                  columns = shape->columns, valid = shape->valid_columns;
    float                   *space = host_scratch(work, thread, columns);
    for (int64_t row = first; row < last; row++) {
        int32_t target = targets[row];
        if (target < 0 || target >= valid) {
            FATAL(EXIT_INTERNAL, "cross entropy: target %" PRId32 " at row %" PRId64 " is outside %" PRId64 " classes",
                  target, row, valid);
        }
        row_read(logits, row * columns, valid, space);
        float *x       = row_open(logits, row * columns, space);
        float  maximum = row_maximum(x, valid), chosen = x[target];
        double sum   = row_exponential(x, maximum, valid);
        losses[row]  = (float)(log(sum) + (double)maximum - (double)chosen);
        float factor = (float)((double)shape->scale / sum);
        for (int64_t i = 0; i < valid; i++) {
            x[i] *= factor;
        }
        x[target] -= shape->scale;
        memset(x + valid, 0, sizeof(*x) * (size_t)(columns - valid));
        row_close(logits, row * columns, columns, x);
    }
}

void host_cross_entropy(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, cross_entropy_rows, op->shape.rows.rows);
}

void host_loss_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    double sum = (double)op->shape.rows.scale * row_sum(buffers[LOSS_SUM_IN].data, op->shape.rows.rows);
    float *out = buffers[LOSS_SUM_OUT].data;
    *out       = (float)(op->accumulates ? (double)*out + sum : sum);
}
