// SPDX-License-Identifier: MIT
// Where the time of a step goes: from the model's FLOPs at the device's peak to the whole step, in parts that add up to
// it, none of them below zero. The same for predicted and for measured op times; docs/method.md defines the parts.
#ifndef GSWBENCH_WATERFALL_H
#define GSWBENCH_WATERFALL_H

#include <stdbool.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/plan.h"

// clang-format off
#define AXIS_EXPOSED(NAME, ...) WATERFALL_EXPOSED_##NAME,
enum waterfall_part {
    WATERFALL_IDEAL,        // the model's FLOPs at the peak, but no more than GEMMs and attention took
    WATERFALL_GEMM,         // GEMMs, beyond their share of ideal
    WATERFALL_ATTENTION,    // likewise
    WATERFALL_MEMORY,       // ops that memory bounds
    WATERFALL_CAST,         // casts, quantizing
    WATERFALL_RECOMPUTE,
    WATERFALL_OPTIMIZER,    // what follows the backward pass: gradient norm, clipping, update
    WATERFALL_BUBBLE,       // compute idle because other stages have nothing for it yet
    AXES(AXIS_EXPOSED)      // compute idle because of transfers along an axis
    WATERFALL_LAUNCH,         // compute idle because the host has not launched what comes next
    WATERFALL_CONTENTION,     // what ops that compute lose to transfers beside them
    WATERFALL_STRAGGLERS,     // waiting for slower ranks
    WATERFALL_UNEXPLAINED,    // between ops, and the rest
    WATERFALL_PARTS
};
// clang-format on
extern const char *const waterfall_part_names[];    // "ideal", "exposed-dp"

struct waterfall {
    double seconds[WATERFALL_PARTS];
};
extern const struct json_field waterfall_fields[];    // "ideal", "exposed_dp"

// One rank's step.
struct waterfall_step {
    const struct plan    *plan;
    const struct op_time *times;     // [op_count]
    const double         *prices;    // [op_count]: what each op takes alone, known in simulations; NULL: not known
    const bool           *alone;     // [op_count]: transfers that compute waits for, in simulations; NULL: none
    const int32_t        *held;      // [op_count]: what else the op waits for, in simulations; -1: nothing; NULL: none
    const double         *launches;    // [op_count]: what its host takes to launch each op, in simulations; NULL: none
    double                launch_alone;    // share of these for which an op that has begun still waits, in its price
    double                step_seconds;
    double                ideal_seconds;      // the model's FLOPs of a rank at the peak; 0: no peak is known
    double                attention_share;    // of the model's FLOPs
};
void waterfall_compute(struct waterfall *waterfall, const struct waterfall_step *step);

// The part of transfers in a group along these axes: of the axis that claims them (axis.h).
enum waterfall_part waterfall_exposed(uint32_t axes);
// The part that an op's time is: of a transfer, the time for which nothing hides it.
enum waterfall_part waterfall_part_of(const struct plan *plan, const struct op *op);

// Of a rank's ops that compute: the rank with the most is the one to explain.
double waterfall_compute_seconds(const struct plan *plan, const struct op_time *times);

// A rank's ops from begin to end, by kind and phase, whatever runs beside them.
struct op_totals {
    int64_t count[OP_COUNT][PHASE_COUNT];
    double  seconds[OP_COUNT][PHASE_COUNT];
    double  flops[OP_COUNT][PHASE_COUNT], bytes[OP_COUNT][PHASE_COUNT];
};
void waterfall_add_op(struct op_totals *totals, const struct plan *plan, const struct op *op, double seconds);
void waterfall_sum_ops(struct op_totals *totals, const struct plan *plan, const struct op_time *times);

// waterfall_print.c: a line for each part that has at least half a thousandth of the step: those that are shown; beside
// what was expected of them (NULL: nothing).
bool waterfall_shows(const struct waterfall *waterfall, enum waterfall_part part);
void waterfall_print(const struct waterfall *waterfall, const struct waterfall *expected, FILE *file);

#endif
