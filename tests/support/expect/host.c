// SPDX-License-Identifier: MIT
// Runs one op on the host backend and compares results.
#include "host.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "op_operands.h"

const enum format types[TYPES] = {FORMAT_F32, FORMAT_BF16};

double tolerance(enum format format)
{
    return format == FORMAT_F32 ? 2e-6 : 4.5e-3;
}

struct buffer make_output(enum format format, int64_t elements)
{
    struct buffer buffer = make_buffer(format, elements);
    for (int64_t i = 0; i <= elements; i++) {
        set(&buffer, i, NAN);
    }
    return buffer;
}

void make_slots(struct op *op, const char *slots, enum format x, struct buffer buffers[OP_OPERANDS])
{
    *op = complete_op(&(struct op_case){.op = *op, .operands = slots});
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bool        is_present = op->operand[slot] >= 0, is_read = (op->access[slot] & ACCESS_READ) != 0;
        enum format format   = !is_present || slots[slot] == 'x' ? x : format_of(slots[slot]);
        int64_t     elements = is_present ? op_operand_elements(op, slot) : 0;
        buffers[slot]        = !is_present            ? (struct buffer){.data = NULL}
                               : format == FORMAT_I32 ? make_buffer(format, elements)
                               : is_read              ? make_random(format, elements, (uint64_t)slot + 1, 1)
                                                      : make_output(format, elements);
    }
}

double *values_of(const struct buffer *buffer)
{
    double *values = make_space(sizeof(*values) * (size_t)(buffer->elements + 1));
    for (int64_t i = 0; i < buffer->elements; i++) {
        values[i] = get(buffer, i);
    }
    return values;
}

void run_op(const struct op *op, const struct buffer *buffers, int threads)
{
    struct backend backend;
    status         opened = backend_open(&backend, "host", &(struct backend_setup){.threads = threads});
    cr_assert_not(failed(&opened), "%s", opened.text);
    backend_reserve_scratch(&backend, backend.ops->scratch_bytes(&backend, op));
    backend.ops->run[op->kind](&backend, op, buffers);
    backend_close(&backend);
}

void expect_close(const struct buffer *result, const double *expected, double bound, const char *what)
{
    double largest = 1e-30;
    for (int64_t i = 0; i < result->elements; i++) {
        largest = fmax(largest, fabs(expected[i]));
    }
    for (int64_t i = 0; i < result->elements; i++) {
        double error = fabs(get(result, i) - expected[i]) / largest;
        cr_assert(error <= bound, "%s: element %lld of %lld is %.9g, not %.9g", what, (long long)i,
                  (long long)result->elements, get(result, i), expected[i]);
    }
}

void expect_scaled_gemm(const struct op *op, const struct buffer buffers[OP_OPERANDS], double factor,
                        inverse_scale_at *inverse_scale)
{
    const struct gemm_shape *shape = &op->shape.gemm;
    const struct buffer     *c     = &buffers[GEMM_C];
    int64_t                  m = shape->m, n = shape->n, k = shape->k;
    double                  *expected = values_of(c);
    for (int64_t row = 0; row < m; row++) {
        for (int64_t column = 0; column < n; column++) {
            double sum = 0, *to = &expected[row * n + column];
            for (int64_t i = 0; i < k; i++) {
                sum += get(&buffers[GEMM_A], shape->transpose_a ? i * m + row : row * k + i) *
                       inverse_scale(&buffers[GEMM_INVERSE_SCALE_A], shape->scaling_a, m, k, row, i) *
                       get(&buffers[GEMM_B], shape->transpose_b ? column * k + i : i * n + column) *
                       inverse_scale(&buffers[GEMM_INVERSE_SCALE_B], shape->scaling_b, n, k, column, i);
            }
            *to = factor * sum + (op->accumulates ? *to : 0);
            *to += buffers[GEMM_BIAS].data != NULL ? get(&buffers[GEMM_BIAS], column) : 0;
        }
    }
    run_op(op, buffers, 2);
    expect_close(c, expected, c->format == FORMAT_F32 ? 1e-6 : tolerance(c->format), "GEMM");
}

static double loss_of(const struct function *function, const double *in)
{
    double *out = malloc(sizeof(*out) * (size_t)function->outputs), loss = 0;
    function->run(function->context, in, out);
    for (int64_t i = 0; i < function->outputs; i++) {
        loss += out[i] * function->slopes[i];
    }
    free(out);
    return loss;
}

void expect_gradient(const struct function *function, double *in, const struct buffer *result, const double *added,
                     const char *what)
{
    const double step     = 1e-5;
    double      *expected = malloc(sizeof(*expected) * (size_t)function->inputs);
    cr_assert_eq(result->elements, function->inputs);
    for (int64_t i = 0; i < function->inputs; i++) {
        double value = in[i];
        in[i]        = value + step;
        double above = loss_of(function, in);
        in[i]        = value - step;
        double below = loss_of(function, in);
        in[i]        = value;
        expected[i]  = (above - below) / (2 * step) + (added != NULL ? added[i] : 0);
    }
    expect_close(result, expected, function->bound > 0 ? function->bound : tolerance(result->format), what);
    free(expected);
}

// Returns logits whose softmax has the given probabilities.
struct buffer make_logits(const double *probabilities, int64_t elements)
{
    struct buffer logits = make_buffer(FORMAT_F32, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&logits, i, log(probabilities[i]) + 2);
    }
    return logits;
}

struct op route_op(struct routing_shape shape)
{
    return (struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = shape};
}

void make_route_outputs(struct buffer *buffers, const struct op *op)
{
    for (int slot = ROUTE_CHOICES; slot <= ROUTE_STATISTICS; slot++) {
        bool is_integer = slot == ROUTE_CHOICES || slot == ROUTE_SLOTS || slot == ROUTE_SOURCES;
        buffers[slot]   = make_output(is_integer ? FORMAT_I32 : FORMAT_F32, op_operand_elements(op, slot));
        for (int64_t i = 0; is_integer && i <= buffers[slot].elements; i++) {
            set(&buffers[slot], i, -7);
        }
    }
}

void expect_values(const struct buffer *buffer, const double *expected, const char *what)
{
    for (int64_t i = 0; i < buffer->elements; i++) {
        cr_assert(fabs(get(buffer, i) - expected[i]) <= 1e-6 * fmax(1, fabs(expected[i])),
                  "%s: element %lld is %.9g, not %.9g", what, (long long)i, get(buffer, i), expected[i]);
    }
    double guard = get(buffer, buffer->elements);
    cr_assert(isnan(guard) || guard == -7, "%s: written beyond its end", what);
}

struct routing_shape whole(int64_t rows, int64_t experts, int64_t top_k, int64_t taken)
{
    return (struct routing_shape){.rows          = rows,
                                  .columns       = 1,
                                  .total         = rows,
                                  .sequences     = 1,
                                  .sequence_rows = rows,
                                  .experts       = experts,
                                  .top_k         = top_k,
                                  .owners        = 1,
                                  .capacity      = taken,
                                  .taken         = taken,
                                  .scale         = 1};
}
