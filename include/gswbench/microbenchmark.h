// SPDX-License-Identifier: MIT
// A microbenchmark: a step that repeats one op.
#ifndef GSWBENCH_MICROBENCHMARK_H
#define GSWBENCH_MICROBENCHMARK_H

#include <stdint.h>

#include "gswbench/assembly.h"
#include "gswbench/calibrate.h"
#include "gswbench/plan.h"
#include "gswbench/status.h"
#include "gswbench/step.h"

struct microbenchmark {
    int32_t repeats;    // input: repeats of the op per step
    // Compute ops before each transfer; they do not wait for transfers. 0: one compute op, which waits for the
    // previous transfer.
    int32_t computes;

    struct plan     plan;
    struct assembly assembly;    // of the plan
    int32_t         group;       // group of the transfer in the plan
    struct step    *step;        // NULL: not open
};

// Opens a zeroed microbenchmark (microbenchmark.c). Operands hold normally distributed numbers. between is the compute
// op between two transfers; NULL if the op itself computes. microbenchmark_open_alone repeats that compute op on the
// same operands. Collective. The caller also closes a microbenchmark that failed to open.
status microbenchmark_open(struct microbenchmark *bench, const struct distinct_op *distinct,
                           const struct distinct_op *between, const struct calibrate_setup *setup);
status microbenchmark_open_alone(struct microbenchmark *bench, const struct distinct_op *between,
                                 const struct calibrate_setup *setup);
void   microbenchmark_close(struct microbenchmark *bench);

// Runs the step. Returns seconds per repeat, by the device's clock if there is one.
double microbenchmark_run(const struct microbenchmark *bench);

// Adds an op that belongs to no plan, given its shape and operand formats; operand sizes follow from the shape
// (distinct.c). The list keeps each op once; the caller frees it with calibrate_free.
void distinct_add_probe(struct distinct_ops *list, struct op op, const enum format *formats, int operands);

#endif
