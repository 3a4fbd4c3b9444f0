// SPDX-License-Identifier: MIT
// Computes the embedding lookup in a vocabulary shard, and the gradient of its table.
#include <inttypes.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"
#include "internal.h"

int64_t host_local_token(const struct op *op, const int32_t *tokens, int64_t row)
{
    const struct rows_shape *shape = &op->shape.rows;
    int64_t                  token = tokens[row];
    if (token < 0 || token >= shape->total) {
        FATAL(EXIT_INTERNAL, "%s: token %" PRId64 " at row %" PRId64 " is outside a vocabulary of %" PRId64,
              op_name(op->kind), token, row, shape->total);
    }
    int64_t local = token - shape->first;
    return local >= 0 && local < shape->valid_columns ? local : -1;
}

// Returns whether rows of the table are copied unchanged, without conversion to fp32.
static bool copies_rows(const struct op *op)
{
    return !op->accumulates && op->shape.rows.multiplier == 1.0F;
}

static void put_product(const struct loop *loop, int64_t row, int64_t token, float *space)
{
    int64_t      columns = loop->op->shape.rows.columns;
    const float *values  = row_read(&loop->buffers[EMBEDDING_TABLE], token * columns, columns, space);
    row_scale(space, values, columns, loop->op->shape.rows.multiplier);
    row_store(&loop->buffers[EMBEDDING_OUT], row * columns, columns, space, loop->op->accumulates);
}

// Returns the number of floats of scratch per thread: a row in fp32, if it must be scaled or added.
static int64_t forward_floats(const struct op *op)
{
    return copies_rows(op) ? 0 : op->shape.rows.columns;
}

// Copies the table row of each token. Tokens of other vocabulary shards get zeros, so that the sum over shards is the
// embedding.
static void forward_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const int32_t       *tokens  = loop->buffers[EMBEDDING_TOKENS].data;
    const struct buffer *out     = &loop->buffers[EMBEDDING_OUT];
    int64_t              columns = loop->op->shape.rows.columns;
    float               *space   = copies_rows(loop->op) ? NULL : host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        int64_t token = host_local_token(loop->op, tokens, row);
        if (token >= 0 && space != NULL) {
            put_product(loop, row, token, space);
        } else if (token >= 0) {
            row_copy(out, row * columns, &loop->buffers[EMBEDDING_TABLE], token * columns, columns);
        } else if (!loop->op->accumulates) {
            row_clear(out, row * columns, columns);
        }
    }
}

const struct host_op host_embedding_forward = {.body = forward_rows, .count = host_count_rows, .each = forward_floats};

// Returns the number of floats of shared scratch: for each table row, a linked list of the places (indices in TOKENS)
// of the row's token. It has int32 first [table rows], then int32 next [places]; -1: none.
static int64_t list_floats(const struct op *op)
{
    return op->shape.rows.valid_columns + op->shape.rows.rows;
}

static void sum_places(const struct loop *loop, int32_t place, const int32_t *next, double *sums, float *row)
{
    const struct buffer *gradient = &loop->buffers[EMBEDDING_GRADIENT_OUT];
    int64_t              columns  = loop->op->shape.rows.columns;
    memset(sums, 0, sizeof(*sums) * (size_t)columns);
    for (; place >= 0; place = next[place]) {
        const float *values = row_read(gradient, place * columns, columns, row);
        for (int64_t i = 0; i < columns; i++) {
            sums[i] += (double)values[i];
        }
    }
    for (int64_t i = 0; i < columns; i++) {
        row[i] = (float)((double)loop->op->shape.rows.multiplier * sums[i]);
    }
}

static void backward_table_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *table   = &loop->buffers[EMBEDDING_GRADIENT_TABLE];
    int64_t              columns = loop->op->shape.rows.columns;
    const int32_t       *places  = host_shared(loop->host, loop->op);
    const int32_t       *next    = places + loop->op->shape.rows.valid_columns;
    double              *sums    = host_space(loop, thread);
    float               *row     = (float *)(sums + columns);
    for (int64_t token = first; token < last; token++) {
        if (places[token] >= 0) {
            sum_places(loop, places[token], next, sums, row);
            row_store(table, token * columns, columns, row, loop->op->accumulates);
        } else if (!loop->op->accumulates) {
            row_clear(table, token * columns, columns);
        }
    }
}

// Links the places of each token, then sums each table row. One thread sums a table row in the order of places, so
// results do not depend on the number of threads.
static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const int32_t *tokens = buffers[EMBEDDING_GRADIENT_TOKENS].data;
    int32_t       *places = host_shared(backend->state, op);
    int32_t       *next   = places + op->shape.rows.valid_columns;
    memset(places, -1, sizeof(*places) * (size_t)op->shape.rows.valid_columns);
    for (int64_t place = op->shape.rows.rows - 1; place >= 0; place--) {
        int64_t token = host_local_token(op, tokens, place);
        if (token >= 0) {
            next[place]   = places[token];
            places[token] = (int32_t)place;
        }
    }
    host_run_loop(backend, op, buffers, backward_table_rows, op->shape.rows.valid_columns);
}

// Scratch per thread: the sum of a table row in double, and one row in fp32.
const struct host_op host_embedding_backward = {.run = run_backward, .rows = 3, .shared = list_floats};
