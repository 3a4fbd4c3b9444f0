// SPDX-License-Identifier: MIT
// Cross entropy and its gradient for one vocabulary shard, and the sum of losses.
#include <math.h>
#include <string.h>

#include "internal.h"

// Softmax statistics of a row of x = multiplier * logits over the whole vocabulary.
struct row_statistics {
    float  maximum;
    double sum;       // of exp(x - maximum)
    float  target;    // x of the target
};
enum { STATISTICS = 3 };

static void statistics_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct rows_shape *shape   = &loop->op->shape.rows;
    const struct buffer     *logits  = &loop->buffers[LOGIT_STATISTICS_LOGITS];
    const int32_t           *targets = loop->buffers[LOGIT_STATISTICS_TARGETS].data;
    float                   *out     = loop->buffers[LOGIT_STATISTICS_OUT].data;
    float                   *space   = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        int64_t target = host_local_token(loop->op, targets, row);
        float  *own    = out + row * STATISTICS;
        row_scale(space, row_read(logits, row * shape->columns, shape->valid_columns, space), shape->valid_columns,
                  shape->multiplier);
        own[0] = shape->valid_columns > 0 ? row_maximum(space, shape->valid_columns) : -INFINITY;
        own[2] = target >= 0 ? space[target] : 0.0f;
        own[1] = (float)row_exponential(space, own[0], shape->valid_columns);
    }
}

const struct host_op host_logit_statistics = {.body = statistics_rows, .count = host_count_rows, .rows = 1};

// Combines the statistics of a row from the vocabulary shards. statistics: [parts, rows, STATISTICS].
static struct row_statistics join_parts(const float *statistics, const struct rows_shape *shape, int64_t row)
{
    struct row_statistics joined = {.maximum = -INFINITY};
    for (int64_t part = 0; part < shape->parts; part++) {
        const float *own = statistics + (part * shape->rows + row) * STATISTICS;
        joined.maximum   = own[0] > joined.maximum ? own[0] : joined.maximum;
        joined.target += own[2];
    }
    for (int64_t part = 0; part < shape->parts; part++) {
        const float *own = statistics + (part * shape->rows + row) * STATISTICS;
        joined.sum += (double)own[1] * exp((double)own[0] - (double)joined.maximum);
    }
    return joined;
}

// Computes loss = log(sum of exp(x)) - x[target] of each row, with x = multiplier * logits. Replaces the logits by
// their scaled gradient, scale * multiplier * (softmax(x) - onehot(target)).
static void cross_entropy_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct rows_shape *shape      = &loop->op->shape.rows;
    const struct buffer     *logits     = &loop->buffers[CROSS_ENTROPY_LOGITS];
    const int32_t           *targets    = loop->buffers[CROSS_ENTROPY_TARGETS].data;
    const float             *statistics = loop->buffers[CROSS_ENTROPY_STATISTICS].data;
    float                   *losses     = loop->buffers[CROSS_ENTROPY_LOSS].data;
    int64_t                  columns = shape->columns, valid = shape->valid_columns;
    float                   *space = host_space(loop, thread);
    double                   scale = (double)shape->scale * (double)shape->multiplier;
    for (int64_t row = first; row < last; row++) {
        int64_t               target = host_local_token(loop->op, targets, row);
        float                *x      = row_open(logits, row * columns, space);
        struct row_statistics all    = {0};
        row_scale(x, row_read(logits, row * columns, valid, space), valid, shape->multiplier);
        if (statistics != NULL) {
            all = join_parts(statistics, shape, row);
            row_exponential(x, all.maximum, valid);
        } else {
            all.maximum = row_maximum(x, valid);
            all.target  = x[target];
            all.sum     = row_exponential(x, all.maximum, valid);
        }
        losses[row] = (float)(log(all.sum) + (double)all.maximum - (double)all.target);
        row_scale(x, x, valid, (float)(scale / all.sum));
        if (target >= 0) {
            x[target] -= (float)scale;
        }
        memset(x + valid, 0, sizeof(*x) * (size_t)(columns - valid));
        row_close(logits, row * columns, columns, x);
    }
}

const struct host_op host_cross_entropy = {.body = cross_entropy_rows, .count = host_count_rows, .rows = 1};

static void sum_losses(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    double sum = (double)op->shape.rows.scale * row_sum(buffers[LOSS_SUM_IN].data, op->shape.rows.rows);
    float *out = buffers[LOSS_SUM_OUT].data;
    *out       = (float)(op->accumulates ? (double)*out + sum : sum);
}

const struct host_op host_loss_sum = {.run = sum_losses};
