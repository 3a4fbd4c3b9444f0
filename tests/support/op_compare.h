// SPDX-License-Identifier: MIT
// Error of an operand by rows: a wrong late row of attention is visible next to larger early ones.
#ifndef GSWBENCH_TESTS_OP_COMPARE_H
#define GSWBENCH_TESTS_OP_COMPARE_H

#include "gswbench/backend.h"

// Number of elements per row: a head of a token, a row of a matrix.
int64_t compare_row(const struct op *op, int slot, int64_t elements);

// Returns the largest relative error (norm of the difference over the norm) of a row. The denominator is at least a
// tenth of the average row's norm. Infinite if only one side is finite, if an FP8 code differs, or if a guard after the
// operand was written.
double compare_rows(const struct buffer *found, const struct buffer *expected, int64_t row);

#endif
