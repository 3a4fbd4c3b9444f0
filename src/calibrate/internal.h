// SPDX-License-Identifier: MIT
// Declares functions that the files of this folder share. They run microbenchmarks, and measure how communication and
// compute slow each other down.
#pragma once

#include "gswbench/calibrate.h"

// measure.c: measures the ops of the list with microbenchmarks. If `between` is a compute op, measures the
// communication ops, and runs `between` before each. If it is NULL, measures the compute ops.
status microbenchmarks_measure(struct distinct_ops *list, const struct distinct_op *between,
                               const struct calibrate_setup *setup);

// How much communication and compute slow each other down on CPU ranks, where they share cores.
struct disturbance {
    double delay_seconds, communications;    // total delay of the communication ops; their number
    double lost_seconds, busy_seconds;       // compute time lost to communication; time in which both ran
};

// Adds the times of a step in which compute overlaps with communication. seconds: time of one communication op without
// compute. lost_seconds grows by the whole compute time of the step; the caller subtracts the time without
// communication.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds);
