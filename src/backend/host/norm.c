// SPDX-License-Identifier: MIT
// Computes RMS norm, layer norm, and layer norm with weight + 1 (NORM_LAYER_1P), forward and backward.
#include <math.h>
#include <string.h>

#include "gswbench/op_shape.h"
#include "internal.h"

// Writes the factor of each column: the weight, plus 1 for NORM_LAYER_1P.
static void read_factors(float *factors, const struct op *op, const struct buffer *weight)
{
    int64_t      columns = op->shape.rows.columns;
    float        offset  = op->shape.rows.variant == NORM_LAYER_1P ? 1.0f : 0.0f;
    const float *values  = row_read(weight, 0, columns, factors);
    for (int64_t i = 0; i < columns; i++) {
        factors[i] = values[i] + offset;
    }
}

// Returns x, the row to normalise. With a branch, x = in + branch, rounded to its format and stored; else x = in.
static const float *read_sum(const struct loop *loop, int64_t at, float *space, float *branch_space)
{
    const struct buffer *sum     = &loop->buffers[NORM_SUM];
    int64_t              columns = loop->op->shape.rows.columns;
    const float         *in      = row_read(&loop->buffers[NORM_IN], at, columns, space);
    if (loop->buffers[NORM_BRANCH].data == NULL) {
        return in;
    }
    const float *branch = row_read(&loop->buffers[NORM_BRANCH], at, columns, branch_space);
    float       *values = row_open(sum, at, space);
    for (int64_t i = 0; i < columns; i++) {
        values[i] = in[i] + branch[i];
    }
    row_close(sum, at, columns, values);
    return row_read(sum, at, columns, space);
}

static void forward_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct op     *op         = loop->op;
    const struct buffer *out        = &loop->buffers[NORM_OUT];
    int64_t              columns    = op->shape.rows.columns;
    float               *statistics = loop->buffers[NORM_STATISTICS].data;
    float               *factors    = host_space(loop, thread);
    float               *bias_space = factors + columns, *space = bias_space + columns, *other = space + columns;
    bool                 has_bias = loop->buffers[NORM_BIAS].data != NULL;
    read_factors(factors, op, &loop->buffers[NORM_WEIGHT]);
    memset(bias_space, 0, sizeof(*bias_space) * (size_t)columns);
    const float *bias = has_bias ? row_read(&loop->buffers[NORM_BIAS], 0, columns, bias_space) : bias_space;
    for (int64_t row = first; row < last; row++) {
        const float *x        = read_sum(loop, row * columns, space, other);
        double       mean     = op->shape.rows.variant == NORM_RMS ? 0 : row_sum(x, columns) / (double)columns;
        double       variance = row_deviation(x, mean, columns) / (double)columns;
        float        centre   = (float)mean;
        float        inverse  = (float)(1 / sqrt(variance + (double)op->shape.rows.epsilon));
        float       *y        = row_open(out, row * columns, other);
        for (int64_t i = 0; i < columns; i++) {
            y[i] = (x[i] - centre) * inverse * factors[i] + bias[i];
        }
        row_close(out, row * columns, columns, y);
        statistics[2 * row]     = centre;
        statistics[2 * row + 1] = inverse;
    }
}

// Scratch per thread: factors, bias, x, and first branch, then out.
const struct host_op host_norm_forward = {.body = forward_rows, .count = host_count_rows, .rows = 4};

// Number of rows that are summed in fp32 before the sum is added in double. Adding every row in double would be much
// slower.
enum { GROUP_ROWS = 16 };

// Returns the number of floats of shared scratch: partial sums of the weight and bias gradients in double, [HOST_PARTS,
// 2, columns].
static int64_t part_floats(const struct op *op)
{
    return 2 * 2 * op->shape.rows.columns * HOST_PARTS;
}

double *host_part_sums(const struct loop *loop, int64_t part, int64_t count)
{
    return (double *)host_shared(loop->host, loop->op) + part * count;
}

double *host_add_parts(const struct loop *loop, int64_t count, int64_t first, int64_t last)
{
    double *total = host_part_sums(loop, 0, count);
    for (int64_t part = 1; part < HOST_PARTS; part++) {
        const double *values = host_part_sums(loop, part, count);
        for (int64_t i = first; i < last; i++) {
            total[i] += values[i];
        }
    }
    return total + first;
}

// Scratch of a thread: BACKWARD_ROWS rows.
enum { BACKWARD_ROWS = 8 };
struct gradient_rows {
    float *factors, *normalised, *product;
    float *space[3];
    float *sums;    // [2, columns]: weight and bias gradients
};

static void backward_row(const struct loop *loop, int64_t row, const struct gradient_rows *rows)
{
    const struct buffer *residual = &loop->buffers[NORM_GRADIENT_RESIDUAL];
    int64_t              columns = loop->op->shape.rows.columns, at = row * columns;
    const float         *statistics = loop->buffers[NORM_GRADIENT_STATISTICS].data;
    bool                 is_rms     = loop->op->shape.rows.variant == NORM_RMS;
    float                mean = statistics[2 * row], inverse = statistics[2 * row + 1];
    const float         *gradient = row_read(&loop->buffers[NORM_GRADIENT_OUT], at, columns, rows->space[0]);
    const float         *x        = row_read(&loop->buffers[NORM_GRADIENT_X], at, columns, rows->space[1]);
    const float         *factors  = rows->factors;
    float *restrict normalised = rows->normalised, *restrict product = rows->product, *restrict sums = rows->sums;
    for (int64_t i = 0; i < columns; i++) {
        normalised[i] = (x[i] - mean) * inverse;
        product[i]    = gradient[i] * factors[i];
        sums[i] += gradient[i] * normalised[i];
    }
    for (int64_t i = 0; i < columns && !is_rms; i++) {
        sums[columns + i] += gradient[i];
    }
    float along_ones = is_rms ? 0.0f : (float)(row_sum(product, columns) / (double)columns);
    float along_x    = (float)(row_dot(product, normalised, columns) / (double)columns);
    for (int64_t i = 0; i < columns; i++) {
        product[i] = inverse * (product[i] - along_ones - normalised[i] * along_x);
    }
    if (residual->data != NULL) {
        const float *added = row_read(residual, at, columns, rows->space[2]);
        for (int64_t i = 0; i < columns; i++) {
            product[i] += added[i];
        }
    }
    row_close(&loop->buffers[NORM_GRADIENT_IN], at, columns, product);
}

static void flush_sums(double *part, float *sums, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        part[i] += (double)sums[i];
        sums[i] = 0;
    }
}

static void backward_parts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    int64_t              columns = loop->op->shape.rows.columns, total = loop->op->shape.rows.rows;
    float               *space  = host_space(loop, thread);
    struct gradient_rows rows   = {.factors    = space,
                                   .normalised = space + columns,
                                   .product    = space + 2 * columns,
                                   .space      = {space + 3 * columns, space + 4 * columns, space + 5 * columns},
                                   .sums       = space + 6 * columns};
    bool                 is_rms = loop->op->shape.rows.variant == NORM_RMS;
    read_factors(rows.factors, loop->op, &loop->buffers[NORM_GRADIENT_WEIGHT_IN]);
    memset(rows.sums, 0, sizeof(float) * 2 * (size_t)columns);
    for (int64_t part = first; part < last; part++) {
        int64_t start = total * part / HOST_PARTS, end = total * (part + 1) / HOST_PARTS;
        double *sums = host_part_sums(loop, part, 2 * columns);
        memset(sums, 0, sizeof(double) * 2 * (size_t)columns);
        for (int64_t row = start; row < end; row++) {
            backward_row(loop, row, &rows);
            if ((row - start) % GROUP_ROWS == GROUP_ROWS - 1 || row == end - 1) {
                flush_sums(sums, rows.sums, is_rms ? columns : 2 * columns);
            }
        }
    }
}

static void finish_columns(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    int64_t columns = loop->op->shape.rows.columns;
    for (int i = 0; i < 2; i++) {    // weight and bias
        const struct buffer *to = &loop->buffers[i == 0 ? NORM_GRADIENT_WEIGHT : NORM_GRADIENT_BIAS];
        if (to->data != NULL) {
            const double *sums = host_add_parts(loop, 2 * columns, i * columns + first, i * columns + last);
            row_store_sums(to, first, last - first, sums, host_space(loop, thread), loop->op->accumulates);
        }
    }
}

static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, backward_parts, HOST_PARTS);
    host_run_loop(backend, op, buffers, finish_columns, op->shape.rows.columns);
}

const struct host_op host_norm_backward = {.run = run_backward, .rows = BACKWARD_ROWS, .shared = part_floats};
