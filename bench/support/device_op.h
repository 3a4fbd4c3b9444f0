// SPDX-License-Identifier: MIT
// A single op on a device, with random operands of its own, to be run over and over.
#ifndef GSWBENCH_BENCH_DEVICE_OP_H
#define GSWBENCH_BENCH_DEVICE_OP_H

#include "device.h"

struct device_op {
    struct device         *device;
    struct op              op;
    const char            *operands;    // a letter a slot: f fp32, b bf16, 4 E4M3, 5 E5M2, - absent
    struct buffer          buffers[OP_OPERANDS];
    const struct prepared *prepared;
};

// op and operands are set; fails as backend_prepare does.
status device_op_open(struct device_op *one, struct device *device);
void   device_op_close(struct device_op *one);

// Median seconds after so many of warming up. Ends the program where a result is no number.
double device_op_seconds(struct device_op *one, double warm_up);

// Bytes a second that a copy of so many bytes within the device reads and writes.
double device_copy_rate(struct device *device, int64_t bytes, double warm_up);

#endif
