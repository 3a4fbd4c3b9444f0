// SPDX-License-Identifier: MIT
// A single op on a GPU with random operands, for repeated runs.
#pragma once

#include "device.h"

struct device_op {
    struct device         *device;
    struct op              op;
    const char            *operands;    // one letter per operand: f fp32, b bf16, 4 E4M3, 5 E5M2, - absent
    struct buffer          buffers[OP_OPERANDS];
    const struct prepared *prepared;
};

// The caller sets op and operands. Returns the errors of backend_prepare.
status device_op_open(struct device_op *one, struct device *device);
void   device_op_close(struct device_op *one);

// Median seconds after warm_up seconds. Exits if a result is NaN or infinite.
double device_op_seconds(struct device_op *one, double warm_up);

// Bytes/s read and written by a device-to-device copy of this size.
double device_copy_rate(struct device *device, int64_t bytes, double warm_up);
