// SPDX-License-Identifier: MIT
// Inputs for isolated ops. A GEMM gets small integers, and few nonzeros in B, so partial sums are integers below 256.
// These are exact in bf16, so every summation order gives the same bits. Other ops get fractions; fp32 arrays hold
// scales, moments and statistics, so theirs are positive.
#include "numbers.h"

#include <math.h>
#include <stdlib.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/element.h"

// PERIOD is prime, so repeats do not align with rows.
enum { PERIOD = 1048573, LARGEST = 7, COLUMN_MAX = 1024 };
enum { ADDED = 24 };    // mean number of nonzero terms per sum, set by zeros in B

static uint64_t hash_of(int64_t index, int stream)
{
    return XXH3_64bits_withSeed(&index, sizeof(index), (uint64_t)stream);
}

// Uniform in [0, bound).
static int64_t below(uint64_t hash, int64_t bound)
{
    return (int64_t)((hash >> 32) * (uint64_t)bound >> 32);
}

static float sign_of(uint64_t hash)
{
    return hash & 1 ? 1 : -1;
}

static float number_of_gemm(const struct gemm_shape *shape, int slot, uint64_t hash)
{
    switch (slot) {
    case GEMM_FACTOR_A:
    case GEMM_FACTOR_B:
        return 1;
    case GEMM_B:
        return below(hash, shape->k) < ADDED ? sign_of(hash) : 0;
    default:
        return (float)(below(hash, 2 * LARGEST + 1) - LARGEST);
    }
}

static float number_of(const struct op *op, int slot, enum format format, uint64_t hash)
{
    if (op->kind == OP_GEMM) {
        return number_of_gemm(&op->shape.gemm, slot, hash);
    }
    if (format == FORMAT_I32) {
        return (float)below(hash, op->shape.rows.total);
    }
    float fraction = (float)(0.25 + 0.75 * ldexp((double)(hash >> 32), -32));
    return format != FORMAT_F32 && op->kind != OP_ADAMW ? fraction * sign_of(hash) : fraction;
}

struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements)
{
    struct numbers numbers = {.count = elements < PERIOD ? elements : PERIOD};
    numbers.number         = memory_allocate((size_t)numbers.count * sizeof(*numbers.number));
    for (int64_t i = 0; i < numbers.count; i++) {
        numbers.number[i] = number_of(op, slot, format, hash_of(i, slot));
    }
    return numbers;
}

struct numbers numbers_of_columns(int64_t columns)
{
    struct numbers numbers = {.count = columns};
    numbers.number         = memory_allocate((size_t)columns * sizeof(*numbers.number));
    for (int64_t i = 0; i < columns; i++) {
        uint64_t hash     = hash_of(i, OP_OPERANDS);
        numbers.number[i] = (float)(1 + below(hash, COLUMN_MAX)) * sign_of(hash);
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
