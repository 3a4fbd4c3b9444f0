// SPDX-License-Identifier: MIT
// Inputs for isolated ops: the same on every rank, and such that a GEMM's product is known.
#ifndef GSWBENCH_VALIDATE_NUMBERS_H
#define GSWBENCH_VALIDATE_NUMBERS_H

#include "gswbench/validate.h"

// A sequence of numbers that repeats after count.
struct numbers {
    float  *number;    // [count]
    int64_t count;
};

// numbers_of_operand returns an operand's numbers in storage order. numbers_of_columns returns the vector r that
// multiplies C.
struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements);
struct numbers numbers_of_columns(int64_t columns);
void           numbers_free(struct numbers *numbers);
void           numbers_write(const struct numbers *numbers, enum format format, void *data);

// Returns the number at *at, and advances.
static inline float numbers_next(const struct numbers *numbers, int64_t *at)
{
    float number = numbers->number[*at];
    *at          = *at + 1 == numbers->count ? 0 : *at + 1;
    return number;
}

// gemm.c: first wrong row of C after the op has run; -1: none.
int64_t gemm_find_wrong_row(const struct validation_setup *setup, const struct op *op);

#endif
