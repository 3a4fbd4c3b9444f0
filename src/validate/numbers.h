// SPDX-License-Identifier: MIT
// Numbers for an op that is looked at alone: the same on every rank, and of a GEMM such that its product is known.
#ifndef GSWBENCH_VALIDATE_NUMBERS_H
#define GSWBENCH_VALIDATE_NUMBERS_H

#include "gswbench/validate.h"

// They come again after count.
struct numbers {
    float  *number;    // [count]
    int64_t count;
};

// Of an operand, in the order in which it is stored; and what each column of a GEMM's C is multiplied by, when its rows
// are summed up.
struct numbers numbers_of_operand(const struct op *op, int slot, enum format format, int64_t elements);
struct numbers numbers_of_columns(int64_t columns);
void           numbers_free(struct numbers *numbers);
void           numbers_write(const struct numbers *numbers, enum format format, void *data);

// The next one, of those before *at.
static inline float numbers_next(const struct numbers *numbers, int64_t *at)
{
    float number = numbers->number[*at];
    *at          = *at + 1 == numbers->count ? 0 : *at + 1;
    return number;
}

// gemm.c: the first row of C that is not what the operands of an op that has run make; -1: all are.
int64_t gemm_find_wrong_row(const struct validation_setup *setup, const struct op *op);

#endif
