// SPDX-License-Identifier: MIT
// Shared by the GPU benchmarks: command line, setup of the device, random operands, times, and records. A record is a
// line of a table on stdout, and a JSON line that is appended to a file.
#pragma once

#include <stdio.h>

#include "gswbench/backend.h"

enum { DEVICE_SKIPPED = 77 };

// An emulated device runs on the CPU, so sizes and repeats are smaller.
#ifdef GSWBENCH_EMULATED
enum { DEVICE_SHRINKS = 64, DEVICE_RUNS = 2 };
#else
enum { DEVICE_SHRINKS = 1, DEVICE_RUNS = 25 };
#endif

// Rates per second; 0: unknown. fp8_fast is FP8 with fast accumulation, fp8 with fp32 accumulation.
struct device_rates {
    double copy_bytes, gemm_flops, fp8_fast_flops, fp8_flops;
};

struct device {
    struct backend                backend;
    const struct backend_streams *streams;
    FILE                         *records;
    char                          text[256];    // description of the backend
    struct device_rates           bounds;       // rates of optimized code on this device
    bool                          is_h200;      // published attention rates are for H200
};

void device_require(status result);

// A case of a benchmark. It is the first member of the benchmark's own struct.
struct device_case {
    const char *name;    // such as "gemm/8192x8192x8192-nn"
    void (*run)(struct device *device, const struct device_case *one);
};

// Main program of a benchmark. Its arguments are --list, --device, or FILE [START]: FILE gets the records, and START
// selects cases whose names start with it. cases has `count` structs of `bytes` bytes.
int device_main(int argc, char **argv, const void *cases, size_t bytes, int count);

// Returns an operand with normally distributed values. With zeros, a GPU would draw less power and run faster.
struct buffer device_operand(struct device *device, enum format format, int64_t elements);

// Returns the median seconds of DEVICE_RUNS calls of work, which enqueues on the compute stream, after warm_up seconds.
double device_median_seconds(struct device *device, void (*work)(void *), void *argument, double warm_up);

// Exits if the first million elements of the buffer contain NaN or infinity.
void device_require_numbers(struct device *device, const struct buffer *buffer, const char *name);

struct device_record {
    const char *bench, *name;
    double      seconds, bound_seconds, flops, bytes;
};

// Returns the seconds for an amount at a rate; 0 if the rate is unknown.
double device_bound(double amount, double rate);

// Prints and appends a record. Bound, FLOPs and bytes may be 0: unknown.
void device_report(struct device *device, const struct device_record *record);

// Exits if FP8 GEMMs do not work: with DEVICE_SKIPPED if the device has no FP8, else with the error.
void device_require_fp8(struct device *device);

// Returns the rate of a GEMM whose operand A has this format, in FLOP/s.
double device_gemm_flops(const struct device_rates *rates, const struct op *op, enum format a);

// Returns the bytes that an op reads and writes, with each operand counted once.
double device_op_bytes(const struct op *op, const struct buffer buffers[OP_OPERANDS]);
