// SPDX-License-Identifier: MIT
// Makes random inputs for tests of single ops, and verifies GEMMs on them. A GEMM gets small integers, and B is mostly
// zero, so that all partial sums are integers below 256. BF16 represents these exactly, so the result has the same bits
// in any order of summation. Other ops get fractions. In fp32 tensors these are positive, because such tensors hold
// scales, moments and statistics.
#include "internal.h"

#include <math.h>
#include <stdlib.h>

#include <xxhash.h>

// Large operands repeat after PERIOD numbers; PERIOD is prime, so that rows differ. LARGEST is the largest magnitude in
// A, C and the bias, LARGEST_FP4 the same in FP4, which represents all integers up to 4. COLUMN_MAX is the largest
// magnitude in the vector that multiplies C to check it (make_vector).
enum { PERIOD = 1048573, LARGEST = 7, LARGEST_FP4 = 4, COLUMN_MAX = 1024 };
enum { ADDED = 24 };    // mean number of nonzero elements in a column of B

static uint64_t hash_index(int64_t index, int stream)
{
    return XXH3_64bits_withSeed(&index, sizeof(index), (uint64_t)stream);
}

// Returns an integer that is uniform in [0, bound).
static int64_t draw_below(uint64_t hash, int64_t bound)
{
    return (int64_t)((hash >> 32) * (uint64_t)bound >> 32);
}

static float draw_sign(uint64_t hash)
{
    return hash & 1 ? 1 : -1;
}

static float draw_for_gemm(const struct gemm_shape *shape, int slot, enum format format, uint64_t hash)
{
    int64_t largest = format == FORMAT_E2M1 ? LARGEST_FP4 : LARGEST;
    switch (slot) {
    case GEMM_INVERSE_SCALE_A:
    case GEMM_INVERSE_SCALE_B:
    case GEMM_TENSOR_SCALE_A:
    case GEMM_TENSOR_SCALE_B:
        return 1;
    case GEMM_B:
        return draw_below(hash, shape->k) < ADDED ? draw_sign(hash) : 0;
    default:
        return (float)(draw_below(hash, 2 * largest + 1) - largest);
    }
}

static float draw_number(const struct op *op, int slot, enum format format, uint64_t hash)
{
    if (op->kind == OP_GEMM) {
        return draw_for_gemm(&op->shape.gemm, slot, format, hash);
    }
    if (format == FORMAT_I32) {
        return (float)draw_below(hash, op->shape.rows.total);
    }
    float fraction = (float)(0.25 + 0.75 * ldexp((double)(hash >> 32), -32));
    return format != FORMAT_F32 && op->kind != OP_ADAMW ? fraction * draw_sign(hash) : fraction;
}

struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements)
{
    // even for FP4, whose elements are half a byte: each repeat of the numbers begins at a byte
    int64_t        period  = format_table[format].bits < 8 ? PERIOD - 1 : PERIOD;
    struct numbers numbers = {.count = elements < period ? elements : period};
    numbers.number         = memory_allocate((size_t)numbers.count * sizeof(*numbers.number));
    for (int64_t i = 0; i < numbers.count; i++) {
        numbers.number[i] = draw_number(op, slot, format, hash_index(i, slot));
    }
    return numbers;
}

// Returns a vector r of random integers that are not 0, which multiplies C to check it.
static struct numbers make_vector(int64_t columns)
{
    struct numbers numbers = {.count = columns};
    numbers.number         = memory_allocate((size_t)columns * sizeof(*numbers.number));
    for (int64_t i = 0; i < columns; i++) {
        uint64_t hash     = hash_index(i, OP_OPERANDS);
        numbers.number[i] = (float)(1 + draw_below(hash, COLUMN_MAX)) * draw_sign(hash);
    }
    return numbers;
}

void numbers_free(struct numbers *numbers)
{
    free(numbers->number);
}

void numbers_write(const struct numbers *numbers, enum format format, void *data)
{
    for (int64_t i = 0; i < numbers->count; i++) {
        element_write(format, data, i, numbers->number[i]);
    }
}

// A matrix in memory. C = A B is verified with a vector r without zeros (Freivalds' algorithm): C r must equal A (B r).
// All numbers are small integers, so both sides are exact in fp64, and one wrong element of C is always found.
struct stored {
    int64_t rows, columns;
    bool    is_transposed;    // column-major if true, else row-major
};

// Adds matrix * vector to product.
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

// Adds the expected value of C r to rows: A (B r), plus the previous C r if the GEMM accumulates, plus the bias times
// r.
static void find_expected(double *rows, const struct op *op, const enum format formats[OP_OPERANDS], const double *r)
{
    const struct gemm_shape *shape   = &op->shape.gemm;
    double                  *product = allocate(shape->k);
    int                      slot_of_a =
        // if A and B are the same tensor, it holds the numbers of B, which are written last
        op->operand[GEMM_A] == op->operand[GEMM_B] ? GEMM_B : GEMM_A;
    struct numbers a = numbers_of_operand(op, slot_of_a, formats[GEMM_A], shape->m * shape->k);
    struct numbers b = numbers_of_operand(op, GEMM_B, formats[GEMM_B], shape->k * shape->n);
    multiply(product, &b, (struct stored){shape->k, shape->n, shape->transpose_b}, r);
    for (int64_t k = 0; k < shape->k; k++) {
        product[k] *= (double)gemm_scale(shape);
    }
    multiply(rows, &a, (struct stored){shape->m, shape->k, shape->transpose_a}, product);
    if (op->accumulates) {
        struct numbers c = numbers_of_operand(op, GEMM_C, formats[GEMM_C], shape->m * shape->n);
        multiply(rows, &c, (struct stored){.rows = shape->m, .columns = shape->n}, r);
        numbers_free(&c);
    }
    if (op->operand[GEMM_BIAS] >= 0) {
        struct numbers bias = numbers_of_operand(op, GEMM_BIAS, formats[GEMM_BIAS], shape->n);
        double         sum  = 0;
        multiply(&sum, &bias, (struct stored){.rows = 1, .columns = shape->n}, r);
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
    const struct gemm_shape *shape = &op->shape.gemm;
    int                      exponent;
    // a GEMM with another scale than a power of two, or with an addend, rounds its output: not checked
    if (frexpf(gemm_scale(shape), &exponent) != 0.5F || op->operand[GEMM_ADDEND] >= 0) {
        return -1;
    }
    struct numbers columns = make_vector(shape->n);
    double        *rows = allocate(shape->m), *r = allocate(shape->n);
    enum format    formats[OP_OPERANDS];
    for (int slot = 0; slot < op->operand_count; slot++) {
        formats[slot] = op->operand[slot] >= 0 ? setup->plan->tensors[op->operand[slot]].format : FORMAT_F32;
    }
    for (int64_t j = 0; j < shape->n; j++) {
        r[j] = columns.number[j];
    }
    find_expected(rows, op, formats, r);
    int64_t wrong = find_wrong(setup, op, rows, r);
    free(r);
    free(rows);
    numbers_free(&columns);
    return wrong;
}
