// SPDX-License-Identifier: MIT
// Splits the time of a step into parts that are never negative and add up to it, starting from the model's FLOPs at the
// device's peak. Works on predicted and measured op times. docs/method.md defines the parts.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/plan.h"

// clang-format off
#define AXIS_EXPOSED(NAME, ...) WATERFALL_EXPOSED_##NAME,
enum waterfall_part {
    WATERFALL_IDEAL,        // the model's FLOPs at peak, at most the time of GEMMs and attention
    WATERFALL_GEMM,         // GEMM time beyond ideal
    WATERFALL_ATTENTION,    // attention time beyond ideal
    WATERFALL_MEMORY,       // memory-bound ops
    WATERFALL_CAST,         // casts and quantization
    WATERFALL_RECOMPUTE,
    WATERFALL_OPTIMIZER,    // after the backward pass: gradient norm, clipping, update
    WATERFALL_BUBBLE,       // compute idle, waiting for another pipeline stage
    AXES(AXIS_EXPOSED)      // exposed communication along an axis
    WATERFALL_LAUNCH,         // compute idle, waiting for the host to launch an op
    WATERFALL_CONTENTION,     // compute slowed down by concurrent communication
    WATERFALL_STRAGGLERS,     // waiting for slower ranks
    WATERFALL_UNEXPLAINED,    // gaps between ops, and the remainder
    WATERFALL_PARTS
};
// clang-format on
extern const char *const waterfall_part_names[];    // "ideal", "exposed-dp"

struct waterfall {
    double seconds[WATERFALL_PARTS];
};
extern const struct json_field waterfall_fields[];    // "ideal", "exposed_dp"

// One rank's step. The arrays that only simulations have may be NULL.
struct waterfall_step {
    const struct plan    *plan;
    const struct op_time *times;           // [op_count]
    const double         *costs;           // [op_count]: simulation only, s of each op run alone
    const bool           *alone;           // [op_count]: simulation only, communication ops that block compute
    const int32_t        *held;            // [op_count]: simulation only, one more op that it waits for; -1: none
    const double         *launches;        // [op_count]: simulation only, s to launch each op on the host
    double                launch_alone;    // share of a launch that a started op waits for; part of its cost
    double                step_seconds;
    double                ideal_seconds;      // the rank's model FLOPs at peak; 0: peak unknown
    double                attention_share;    // share of the model FLOPs
};
void waterfall_compute(struct waterfall *waterfall, const struct waterfall_step *step);

// The part for exposed communication of a group along these axes, by the axis that claims them (mesh.h).
enum waterfall_part waterfall_exposed(uint32_t axes);
// The part for an op's time; for a communication op, its exposed time.
enum waterfall_part waterfall_part_of(const struct plan *plan, const struct op *op);

// Total time of a rank's compute ops. The rank with the largest total is the one to explain.
double waterfall_compute_seconds(const struct plan *plan, const struct op_time *times);

// Totals of a rank's ops by kind and phase, regardless of overlap.
struct op_totals {
    int64_t count[OP_COUNT][PHASE_COUNT];
    double  seconds[OP_COUNT][PHASE_COUNT];
    double  flops[OP_COUNT][PHASE_COUNT], bytes[OP_COUNT][PHASE_COUNT];
};
void waterfall_add_op(struct op_totals *totals, const struct plan *plan, const struct op *op, double seconds);
void waterfall_sum_ops(struct op_totals *totals, const struct plan *plan, const struct op_time *times);

// Prints a line per part. waterfall_shows is true for parts of at least 0.05 % of the step. expected adds a column for
// comparison; NULL: none.
bool waterfall_shows(const struct waterfall *waterfall, enum waterfall_part part);
void waterfall_print(const struct waterfall *waterfall, const struct waterfall *expected, FILE *file);

// Writes op times as a trace for Perfetto: a process per rank, a thread per stream.

// Ranks in the trace. Arrows connect sends with receives between them.
struct timeline_ranks {
    bool (*shows)(const void *state, int64_t rank);
    const void *state;
};

// Source of the times.
struct timeline_source {
    const char *timed_by;        // as in struct result_trace, or "prediction"
    int64_t     lost_records;    // dropped activity records; their ops may have taken longer
};

// A file consists of timeline_begin, any number of ranks, and timeline_end. The caller checks the stream for errors.
void timeline_begin(FILE *file);
void timeline_write_rank(const struct plan *plan, const struct op_time *times, const struct timeline_ranks *ranks,
                         bool is_first, FILE *file);
void timeline_end(const struct timeline_source *source, FILE *file);
