// SPDX-License-Identifier: MIT
// A GEMM proven with a vector: (A B) r is A (B r). All numbers are whole and small, so that both sides are exact in
// fp64, and a single wrong element of C shows.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/element.h"
#include "numbers.h"

struct stored {
    int64_t rows, columns;
    bool    is_transposed;    // column by column, else row by row
};

// A matrix times a vector, added to the product.
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

// What the rows of C add up to, multiplied by r: A (B r), C r as it was where the GEMM adds to it, and its bias times
// r.
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

int64_t gemm_find_wrong_row(const struct op *op, const enum format formats[OP_OPERANDS], const void *c)
{
    const struct gemm_shape *shape   = &op->shape.gemm;
    struct numbers           columns = numbers_of_columns(shape->n);
    double                  *rows = allocate(shape->m), *r = allocate(shape->n);
    int64_t                  wrong = -1;
    for (int64_t j = 0; j < shape->n; j++) {
        r[j] = columns.number[j];
    }
    expect(rows, op, formats, r);
    for (int64_t i = 0; i < shape->m && wrong < 0; i++) {
        double sum = 0;
        for (int64_t j = 0; j < shape->n; j++) {
            sum += r[j] * (double)element_read(formats[GEMM_C], c, i * shape->n + j);
        }
        wrong = sum == rows[i] ? -1 : i;
    }
    free(r);
    free(rows);
    numbers_free(&columns);
    return wrong;
}
