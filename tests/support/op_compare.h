// SPDX-License-Identifier: MIT
// Runs an op on a device and compares its operands row by row. Operands are copies of host memory with guard elements
// after them (op_operands.h). Row by row, an error in a late row of attention is visible, although early rows have
// larger values.
#pragma once

#include "gswbench/backend.h"

// Runs the op on copies that start `beside` elements after the start of an allocation, so that they can be misaligned.
// Copies the results back. Ends the program if the device refuses the op.
void run_on_device(struct backend *device, const struct op *op, int beside, struct buffer operands[OP_OPERANDS]);

// Does the same for the two parts of a fused op, one after the other.
void run_apart_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS]);

// Returns the number of elements per row. A row is a head of a token, or a row of a matrix.
int64_t compare_row(const struct op *op, int slot, int64_t elements);

// Returns the largest relative error of a row: the norm of the difference divided by the norm of the row, or by a tenth
// of the average row's norm if that is larger. Returns infinity if only one side is finite, if an FP8 code differs, or
// if a guard after the operand was overwritten.
double compare_rows(const struct buffer *found, const struct buffer *expected, int64_t row);
