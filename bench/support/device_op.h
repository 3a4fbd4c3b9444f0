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

// Opens an op. The caller has set op and operands. Returns the error of backend_prepare, if any.
status device_op_open(struct device_op *one, struct device *device);
void   device_op_close(struct device_op *one);

// Returns the median seconds after warm_up seconds. Exits if a result is NaN or infinite.
double device_op_seconds(struct device_op *one, double warm_up);

// Returns the bytes/s that a device-to-device copy of this size reads and writes.
double device_copy_rate(struct device *device, int64_t bytes, double warm_up);
