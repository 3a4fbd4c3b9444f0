// SPDX-License-Identifier: MIT
// What the benchmarks of a device share: their command line, opening the device, random operands, times by its own
// clock, and records of what was measured: a line of a table on stdout, and one of JSON at the end of a file.
#ifndef GSWBENCH_BENCH_DEVICE_H
#define GSWBENCH_BENCH_DEVICE_H

#include <stdio.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77 };

// Where a processor emulates the device, sizes are so many times smaller, and little is run.
#ifdef GSWBENCH_EMULATED
enum { DEVICE_SHRINKS = 64, DEVICE_RUNS = 2 };
#else
enum { DEVICE_SHRINKS = 1, DEVICE_RUNS = 25 };
#endif

// Rates per second; 0: unknown. FP8 has two: with sums in few digits, and in fp32.
struct device_rates {
    double copy_bytes, gemm_flops, fp8_fast_flops, fp8_flops;
};

struct device {
    struct backend                backend;
    const struct backend_streams *streams;
    FILE                         *records;
    char                          text[256];    // what the backend says of itself
    struct device_rates           bounds;       // what well-written code reaches on this device
    bool                          is_h200;      // published rates of attention are an H200's
};

void device_require(status result);

// One of the things that a benchmark measures; the first member of what it needs to know.
struct device_case {
    const char *name;    // "gemm/8192x8192x8192-nn"
    void (*run)(struct device *device, const struct device_case *one);
};

// The main program: --list, --device, or FILE [START], which measures the cases whose names begin so, or all. cases:
// [count], each of so many bytes.
int device_main(int argc, char **argv, const void *cases, size_t bytes, int count);

// Normal values: a chip that multiplies zeros is faster than one that works.
struct buffer device_operand(struct device *device, enum format format, int64_t elements);

// Of what is enqueued on the compute lane, DEVICE_RUNS times after so many seconds of it.
double device_median_seconds(struct device *device, void (*work)(void *), void *argument, double warm_up);

// Ends the program where a number of the buffer's first million is none: what computes NaN measures nothing.
void device_require_numbers(struct device *device, const struct buffer *buffer, const char *name);

struct device_record {
    const char *bench, *name;
    double      seconds, bound_seconds, flops, bytes;
};

// Seconds that an amount takes at a rate; 0 if the rate is unknown.
double device_bound(double amount, double rate);

// Bound, FLOPs and bytes are 0 if unknown.
void device_report(struct device *device, const struct device_record *record);

// Ends the program where the device does not multiply FP8: as skipped where it has none, with what refuses it else.
void device_require_fp8(struct device *device);

// FLOP/s of a GEMM that reads such an A.
double device_gemm_flops(const struct device_rates *rates, const struct op *op, enum format a);

// Bytes of device memory that an op reads and writes, each operand once.
double device_op_bytes(const struct op *op, const struct buffer buffers[OP_OPERANDS]);

#endif
