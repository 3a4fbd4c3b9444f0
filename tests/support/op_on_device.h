// SPDX-License-Identifier: MIT
// Runs an op on a device with operands from host memory that have guards (op_operands.h).
#ifndef GSWBENCH_TESTS_OP_ON_DEVICE_H
#define GSWBENCH_TESTS_OP_ON_DEVICE_H

#include "gswbench/backend.h"

// Runs the op on copies that are offset by `beside` elements from an allocation, and copies the results back. Ends the
// program if the device refuses the op.
void run_on_device(struct backend *device, const struct op *op, int beside, struct buffer operands[OP_OPERANDS]);

// The same for the two parts of a fused op, one after the other.
void run_apart_on_device(struct backend *device, const struct op *op, struct buffer operands[OP_OPERANDS]);

#endif
