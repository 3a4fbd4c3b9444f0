// SPDX-License-Identifier: MIT
// A microbenchmark: a step that runs one op over and over.
#ifndef GSWBENCH_CALIBRATE_INTERNAL_H
#define GSWBENCH_CALIBRATE_INTERNAL_H

#include "gswbench/assembly.h"
#include "gswbench/calibrate.h"
#include "gswbench/step.h"

struct microbenchmark {
    int32_t repeats;     // of the op in a step; set by the caller
    int32_t computes;    // so many ops that compute go before each transfer, and none waits for one; 0: one, that waits

    struct plan     plan;
    struct assembly assembly;    // of the plan
    int32_t         group;       // of the transfer, in the plan
    struct step    *step;        // NULL until it is open
};

// microbenchmark.c: opens a zeroed microbenchmark. Operands hold normal numbers. between is what computes from one
// transfer to the next; NULL: the op computes itself. Alone, it does so on the same operands over and over. Collective.
// A failed one is closed, too.
status microbenchmark_open(struct microbenchmark *bench, const struct distinct_op *distinct,
                           const struct distinct_op *between, const struct calibrate_setup *setup);
status microbenchmark_open_alone(struct microbenchmark *bench, const struct distinct_op *between,
                                 const struct calibrate_setup *setup);
void   microbenchmark_close(struct microbenchmark *bench);

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
