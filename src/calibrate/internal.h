// SPDX-License-Identifier: MIT
// Shared by the files of this folder: microbenchmarks, and the slowdown if communication and compute share cores.
#pragma once

#include "gswbench/calibrate.h"

// measure.c: measures the communication ops of the list, running the compute op `between` before each. If between is
// NULL, measures the compute ops instead.
status microbenchmarks_measure(struct distinct_ops *list, const struct distinct_op *between,
                               const struct calibrate_setup *setup);

// How much communication and compute slow each other down on CPU ranks, where they share cores.
struct disturbance {
    double delay_seconds, communications;    // total delay of this many communication ops
    double lost_seconds, busy_seconds;       // compute time lost to communication; time in which both ran
};

// Adds a traced step with compute next to communication. seconds: time of one communication op without compute. Adds
// the whole compute time to lost_seconds; the caller then subtracts the compute time without communication.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds);
