// SPDX-License-Identifier: MIT
// Verifies C = A B with a vector (Freivalds' algorithm): C r must equal A (B r). All numbers are small integers, so
// both sides are exact in fp64, and any single wrong element of C is detected.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/element.h"
#include "numbers.h"

struct stored {
    int64_t rows, columns;
    bool    is_transposed;    // column-major, else row-major
};

// product += matrix * vector.
static void multiply(double *product, const struct numbers *matrix, struct stored stored, const double *vector)
{
    bool    is_transposed = stored.is_transposed;
    int64_t at = 0, outer = is_transposed ? stored.columns : stored.rows,
            inner = is_transposed ? stored.rows : stored.columns;
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t j = 0; j < inner; j++) {
            double number = numbers_next(matrix, &at);
            if (is_transposed) {
                product[j] += number * vector[i];
            } else {
                product[i] += number * vector[j];
            }
        }
    }
}

static double *allocate(int64_t elements)
{
    return memory_allocate((size_t)elements * sizeof(double));
}

// Expected C r: A (B r), plus the previous C r if the GEMM accumulates, plus bias times r.
static void expect(double *rows, const struct op *op, const enum format formats[OP_OPERANDS], const double *r)
{
    const struct gemm_shape *shape   = &op->shape.gemm;
    double                  *product = allocate(shape->k);
    struct numbers           a       = numbers_of_operand(op, GEMM_A, formats[GEMM_A], shape->m * shape->k);
    struct numbers           b       = numbers_of_operand(op, GEMM_B, formats[GEMM_B], shape->k * shape->n);
    multiply(product, &b, (struct stored){shape->k, shape->n, shape->transpose_b}, r);
    multiply(rows, &a, (struct stored){shape->m, shape->k, shape->transpose_a}, product);
    if (op->accumulates) {
        struct numbers c = numbers_of_operand(op, GEMM_C, formats[GEMM_C], shape->m * shape->n);
        multiply(rows, &c, (struct stored){shape->m, shape->n, false}, r);
        numbers_free(&c);
    }
    if (op->operand[GEMM_BIAS] >= 0) {
        struct numbers bias = numbers_of_operand(op, GEMM_BIAS, formats[GEMM_BIAS], shape->n);
        double         sum  = 0;
        multiply(&sum, &bias, (struct stored){1, shape->n, false}, r);
        for (int64_t i = 0; i < shape->m; i++) {
            rows[i] += sum;
        }
        numbers_free(&bias);
    }
    numbers_free(&a);
    numbers_free(&b);
    free(product);
}

static int64_t find_wrong(const struct validation_setup *setup, const struct op *op, const double *rows,
                          const double *columns)
{
    enum { PIECE_BYTES = 16 << 20 };
    const struct gemm_shape *shape    = &op->shape.gemm;
    enum format              format   = setup->plan->tensors[op->operand[GEMM_C]].format;
    int64_t                  together = PIECE_BYTES / format_bytes(format, shape->n), wrong = -1;
    together    = together < 1 ? 1 : together;
    char *piece = memory_allocate((size_t)format_bytes(format, together * shape->n));
    for (int64_t first = 0; first < shape->m && wrong < 0; first += together) {
        int64_t count = shape->m - first < together ? shape->m - first : together;
        step_read_run(setup->step, op->operand[GEMM_C], format_offset(format, first * shape->n),
                      format_bytes(format, count * shape->n), piece);
        for (int64_t i = 0; i < count && wrong < 0; i++) {
            double sum = 0;
            for (int64_t j = 0; j < shape->n; j++) {
                sum += columns[j] * (double)element_read(format, piece, i * shape->n + j);
            }
            wrong = sum == rows[first + i] ? -1 : first + i;
        }
        validation_beat(setup);
    }
    free(piece);
    return wrong;
}

int64_t gemm_find_wrong_row(const struct validation_setup *setup, const struct op *op)
{
    const struct gemm_shape *shape   = &op->shape.gemm;
    struct numbers           columns = numbers_of_columns(shape->n);
    double                  *rows = allocate(shape->m), *r = allocate(shape->n);
    enum format              formats[OP_OPERANDS];
    for (int slot = 0; slot < op->operand_count; slot++) {
        formats[slot] = op->operand[slot] >= 0 ? setup->plan->tensors[op->operand[slot]].format : FORMAT_F32;
    }
    for (int64_t j = 0; j < shape->n; j++) {
        r[j] = columns.number[j];
    }
    expect(rows, op, formats, r);
    int64_t wrong = find_wrong(setup, op, rows, r);
    free(r);
    free(rows);
    numbers_free(&columns);
    return wrong;
}
