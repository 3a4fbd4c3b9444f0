// SPDX-License-Identifier: MIT
// What the benchmarks of a device share: opening it, random operands, times by its own clock, and records of what was
// measured: a line of a table on stdout, and one of JSON in the file that the first argument names.
#ifndef GSWBENCH_BENCH_DEVICE_H
#define GSWBENCH_BENCH_DEVICE_H

#include <stdio.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77, DEVICE_RUNS = 25 };

// What well-written code reaches on an H200, from published measurements: random data, sustained clocks. Bounds are
// set against these.
extern const double device_bf16_flops, device_memory_bytes;

struct device {
    struct backend                backend;
    const struct backend_streams *streams;
    FILE                         *records;
};

void device_require(status result);

// Ends the program where there is no device.
void device_open(struct device *device, int argc, char **argv);
void device_close(struct device *device);

// Normal values: a chip that multiplies zeros is faster than one that works.
struct buffer device_operand(struct device *device, enum format format, int64_t elements);

// Of what is enqueued on the compute lane, DEVICE_RUNS times after so many seconds of it.
double device_median_seconds(struct device *device, void (*work)(void *), void *argument, double warm_up);

struct device_record {
    const char *bench, *name;
    double      seconds, bound_seconds, flops, bytes;
};

// Bound, FLOPs and bytes stand there when they are known.
void device_report(struct device *device, const struct device_record *record);

// Whether the device multiplies FP8.
bool device_has_fp8(struct device *device);

// FLOP/s of a GEMM that reads such an A.
double device_gemm_flops(const struct op *op, enum format a);

// Bytes of device memory that an op reads and writes, each operand once.
double device_op_bytes(const struct op *op, const struct buffer buffers[OP_OPERANDS]);

#endif
