// SPDX-License-Identifier: MIT
// A drill: a step that does one op over and over.
#ifndef GSWBENCH_CALIBRATE_INTERNAL_H
#define GSWBENCH_CALIBRATE_INTERNAL_H

#include "gswbench/assembly.h"
#include "gswbench/calibrate.h"
#include "gswbench/step.h"

struct drill {
    int32_t repeats;     // of the op in a step; set by the caller
    int32_t computes;    // so many ops that compute go before each transfer, and none waits for one; 0: one, that waits

    struct plan     plan;
    struct assembly assembly;    // of the plan
    int32_t         group;       // of the transfer, in the plan
    struct step    *step;        // NULL until it is open
};

// drill.c: opens an empty drill. Operands hold normal numbers. between is what computes from one transfer to the
// next; NULL: the op computes itself. Alone, it does so on the same operands over and over. Collective. A failed one is
// closed, too.
status drill_open(struct drill *drill, const struct sample *sample, const struct sample *between,
                  const struct calibrate_setup *setup);
status drill_open_alone(struct drill *drill, const struct sample *between, const struct calibrate_setup *setup);
void   drill_close(struct drill *drill);

// measure.c: fills the times of those samples that are transfers, with between before each; without it, of the others.
status drills_measure(struct sample_list *list, const struct sample *between, const struct calibrate_setup *setup);

struct disturbance {
    double delay_seconds, transfers;      // by which so many transfers took longer
    double lost_seconds, busy_seconds;    // of computing, and while transfers ran
};

// disturbance.c: adds a step whose transfers take so many seconds each when nothing computes; as lost, all computing.
void disturbance_add(struct disturbance *sum, const struct plan *plan, const struct op_time *times, double seconds);

// Fills what transfers and computing cost each other on cores. Collective.
status disturbance_measure(struct sample_list *list, const struct sample *between, const struct calibrate_setup *setup);

// samples.c: adds an op of the plan, if there is none of its key.
void samples_add(struct sample_list *list, const struct plan *plan, const struct op *op);

#endif
