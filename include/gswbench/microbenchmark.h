// SPDX-License-Identifier: MIT
// A microbenchmark: a step that runs one op over and over.
#ifndef GSWBENCH_MICROBENCHMARK_H
#define GSWBENCH_MICROBENCHMARK_H

#include <stdint.h>

#include "gswbench/assembly.h"
#include "gswbench/calibrate.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
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

// Runs its step. Returns the seconds of a repeat, by the device's clock where there is one.
double microbenchmark_run(const struct microbenchmark *bench);

// distinct.c: an op of no plan, whose shape alone is given: it follows from that how many elements of these formats its
// operands have. The caller frees a list that it has added one to, which has each op once.
void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands);

#endif
