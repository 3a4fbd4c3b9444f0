// SPDX-License-Identifier: MIT
// Declares the waterfall: it divides the time of a step into parts that are never negative and add up to it, starting
// from the model's FLOPs at the device's peak. Works on predicted and measured op times. docs/method.md defines the
// parts.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/plan.h"

// clang-format off
#define AXIS_EXPOSED(NAME, ...) WATERFALL_EXPOSED_##NAME,
enum waterfall_part {
    WATERFALL_IDEAL,    // time of the model's FLOPs at peak, but at most the time of GEMMs and attention
    WATERFALL_GEMM,         // GEMM time beyond ideal
    WATERFALL_ATTENTION,    // attention time beyond ideal
    WATERFALL_MEMORY,    // time of memory-bound ops
    WATERFALL_CAST,    // time of casts and quantization
    WATERFALL_RECOMPUTE,
    WATERFALL_OPTIMIZER,    // time after the backward pass: gradient norm, clipping, update
    WATERFALL_BUBBLE,    // the compute stream waits for another pipeline stage
    AXES(AXIS_EXPOSED)      // exposed communication along an axis
    WATERFALL_LAUNCH,    // the compute stream waits for the host to launch an op
    WATERFALL_CONTENTION,    // compute ops take longer during concurrent communication
    WATERFALL_STRAGGLERS,    // the rank waits for slower ranks
    WATERFALL_UNEXPLAINED,    // gaps between ops, and the remainder
    WATERFALL_PARTS
};
// clang-format on
extern const char *const waterfall_part_names[];    // "ideal", "exposed-dp"

struct waterfall {
    double seconds[WATERFALL_PARTS];
};
extern const struct json_field waterfall_fields[];    // "ideal", "exposed_dp"

// The step of one rank. Arrays that only simulations have may be NULL.
struct waterfall_step {
    const struct plan    *plan;
    const struct op_time *times;           // [op_count]
    const double         *costs;           // [op_count]: simulation only, seconds of each op if it runs alone
    const bool           *alone;           // [op_count]: simulation only, communication ops that block compute
    const int32_t        *held;            // [op_count]: simulation only, one more op that the op waits for; -1: none
    const double         *launches;        // [op_count]: simulation only, seconds to launch each op on the host
    double                launch_alone;    // fraction of a launch that stalls even queued work; costs include it
    double                step_seconds;
    double                ideal_seconds;      // time of the rank's model FLOPs at peak; 0: peak unknown
    double                attention_share;    // fraction of attention in the model FLOPs
};
void waterfall_compute(struct waterfall *waterfall, const struct waterfall_step *step);

// Returns the part for exposed communication of a group along these axes: the part of axis_claims(axes) (mesh.h).
enum waterfall_part waterfall_exposed(uint32_t axes);
// Returns the part for an op's time; for a communication op, the part for its exposed time.
enum waterfall_part waterfall_part_of(const struct plan *plan, const struct op *op);

// Returns the total time of a rank's compute ops. Reports explain the step of the rank with the largest total.
double waterfall_compute_seconds(const struct plan *plan, const struct op_time *times);

// Totals of a rank's ops by kind and phase. They include times that overlap.
struct op_totals {
    int64_t count[OP_COUNT][PHASE_COUNT];
    double  seconds[OP_COUNT][PHASE_COUNT];
    double  flops[OP_COUNT][PHASE_COUNT], bytes[OP_COUNT][PHASE_COUNT];
};
void waterfall_add_op(struct op_totals *totals, const struct plan *plan, const struct op *op, double seconds);
void waterfall_sum_ops(struct op_totals *totals, const struct plan *plan, const struct op_time *times);

// waterfall_shows returns whether a part has at least 0.05 % of the step. waterfall_print prints a line for each such
// part of either waterfall. `expected` adds a column for comparison; NULL: none.
bool waterfall_shows(const struct waterfall *waterfall, enum waterfall_part part);
void waterfall_print(const struct waterfall *waterfall, const struct waterfall *expected, FILE *file);

// The following functions write op times as a trace for Perfetto: a process per rank, a thread per stream.

// Selects the ranks in the trace. Arrows connect sends with receives between them.
struct timeline_ranks {
    bool (*shows)(const void *state, int64_t rank);
    const void *state;
};

// How the times were measured.
struct timeline_source {
    const char *timed_by;        // method of measurement (struct result_trace), or "prediction"
    int64_t     lost_records;    // dropped activity records; their ops may have taken longer
};

// To write a file, call timeline_begin, timeline_write_rank for each rank, and timeline_end. The caller checks the
// stream for errors.
void timeline_begin(FILE *file);
void timeline_write_rank(const struct plan *plan, const struct op_time *times, const struct timeline_ranks *ranks,
                         bool is_first, FILE *file);
void timeline_end(const struct timeline_source *source, FILE *file);
