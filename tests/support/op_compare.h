// SPDX-License-Identifier: MIT
// Runs an op on a device with operands from host memory that have guards (op_operands.h), and compares operands by
// rows: a wrong late row of attention is visible next to larger early ones.
#pragma once

#include "gswbench/backend.h"

// Runs the op on copies that are offset by `beside` elements from an allocation, and copies the results back. Ends the
// program if the device refuses the op.
void run_on_device(struct backend *device, const struct op *op, int beside, struct buffer operands[OP_OPERANDS]);

// The same for the two parts of a fused op, one after the other.
void run_apart_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS]);

// Number of elements per row: a head of a token, a row of a matrix.
int64_t compare_row(const struct op *op, int slot, int64_t elements);

// Returns the largest relative error (norm of the difference over the norm) of a row. The denominator is at least a
// tenth of the average row's norm. Infinite if only one side is finite, if an FP8 code differs, or if a guard after the
// operand was written.
double compare_rows(const struct buffer *found, const struct buffer *expected, int64_t row);
