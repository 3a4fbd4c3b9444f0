// SPDX-License-Identifier: MIT
// Sums kernel times of another program by part of the step: reads a trace of the PyTorch profiler (Chrome JSON) or a
// Chakra execution trace (JSON). gswbench assigns predicted ops to the same parts, so a trace can be compared with a
// prediction.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"
#include "gswbench/status.h"

enum kernel_part {
    KERNEL_ATTENTION,
    KERNEL_GEMM,      // GEMMs, also of experts
    KERNEL_MEMORY,    // norms, activations, routing, copies
    KERNEL_CAST,      // casts and transposed copies
    KERNEL_OPTIMIZER,
    KERNEL_OTHER,         // kernels with an unknown name
    KERNEL_ALL_TO_ALL,    // dispatch and combine of tokens. This and the following parts are communication
    KERNEL_COLLECTIVE,    // other communication
    KERNEL_PARTS
};
extern const char *const kernel_part_names[];

struct kernel {
    double  begin, end;    // microseconds
    int64_t part;          // enum kernel_part
};

struct kernel_trace {
    struct kernel *kernels;
    int64_t        count;
    int64_t        streams;          // number of streams that kernels ran on; 0: unknown
    bool           has_begin;        // false: kernels have durations only
    char           other[160];       // name of the longest kernel of KERNEL_OTHER; "": none
    double         other_longest;    // duration of this kernel in microseconds
};

// kernel_trace_read reads a trace file; its errors name the file. The caller frees the trace, also after an error.
status kernel_trace_read(struct kernel_trace *trace, const char *path);
void   kernel_trace_add(struct kernel_trace *trace, const struct kernel *kernel);
void   kernel_trace_free(struct kernel_trace *trace);

enum kernel_part kernel_part_of_name(const char *name);
enum kernel_part kernel_part_of_op(const struct plan *plan, const struct op *op);

// Seconds of each part. busy: sum of the durations of its kernels, so overlap counts twice. shown: each moment counts
// once, so shown and idle add up to span, the time from the first kernel to the last. Compute kernels that run at the
// same time share it equally. Communication kernels share it only while no compute runs (exposed communication). idle:
// no kernel runs. shown, idle and span are NaN if the trace has no begin times.
struct kernel_sums {
    int64_t count[KERNEL_PARTS];
    double  busy[KERNEL_PARTS], shown[KERNEL_PARTS];
    double  idle, span;
};
void kernel_trace_sum(struct kernel_sums *sums, const struct kernel_trace *trace);
