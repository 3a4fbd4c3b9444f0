// SPDX-License-Identifier: MIT
// What the parts of a calibration share.
#ifndef GSWBENCH_CALIBRATE_INTERNAL_H
#define GSWBENCH_CALIBRATE_INTERNAL_H

#include "gswbench/calibrate.h"
#include "gswbench/microbenchmark.h"

// measure.c: measures the transfers of the list, with between before each; without between, the other ops.
status microbenchmarks_measure(struct distinct_ops *list, const struct distinct_op *between,
                               const struct calibrate_setup *setup);

struct disturbance {
    double delay_seconds, transfers;      // by which so many transfers took longer
    double lost_seconds, busy_seconds;    // of computing, and while transfers ran
};

// disturbance.c: adds a step whose transfers take so many seconds each when nothing computes; as lost, all computing.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds);

// Fills what transfers and computing cost each other on cores. Collective.
status disturbance_measure(struct distinct_ops *list, const struct distinct_op *between,
                           const struct calibrate_setup *setup);

// distinct.c: adds an op of the plan, if there is none of its key.
void distinct_add(struct distinct_ops *list, const struct plan *plan, const struct op *op);

#endif
