// SPDX-License-Identifier: MIT
// An op on a device, from operands in host memory that have guards (op_operands.h).
#ifndef GSWBENCH_TESTS_OP_ON_DEVICE_H
#define GSWBENCH_TESTS_OP_ON_DEVICE_H

#include "gswbench/backend.h"

// Leaves in the operands what the device made of copies of them, which lie so many elements beside an allocation. Ends
// the program where the device refuses the op.
void run_on_device(struct backend *device, const struct op *op, int beside, struct buffer operands[OP_OPERANDS]);

// The same of a fused op's two parts, one after the other.
void run_apart_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS]);

#endif
