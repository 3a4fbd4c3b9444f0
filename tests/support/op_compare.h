// SPDX-License-Identifier: MIT
// How far an operand is from what it should be, row by row: a late row of attention that is wrong shows beside early
// ones that are larger.
#ifndef GSWBENCH_TESTS_OP_COMPARE_H
#define GSWBENCH_TESTS_OP_COMPARE_H

#include "gswbench/backend.h"

// The elements of an operand that are computed together: a head of a token, a row of a matrix.
int64_t compare_row(const struct op *op, int slot, int64_t elements);

// The largest norm of a row's error over the row's norm, which counts as a tenth of the average row's at least.
// Infinite where an element is a number on one side only, where a code of FP8 is another, and where a guard behind the
// operand's end was written.
double compare_rows(const struct buffer *found, const struct buffer *expected, int64_t row);

#endif
