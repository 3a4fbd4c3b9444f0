// SPDX-License-Identifier: MIT
// Proves the numbers of a run while it runs, between its timed steps: a step that is run again leaves the same bits,
// and where a loss is no number, the op that made it is found.
#ifndef GSWBENCH_VALIDATE_H
#define GSWBENCH_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/plan.h"
#include "gswbench/result.h"
#include "gswbench/step.h"

struct validation_setup {
    const struct plan *plan;
    struct step       *step;
    struct comm       *comm;
    struct result     *result;    // reasons and counts go there, the same on every rank
    uint64_t           kin;       // the same on ranks whose ops find the same bits: of hardware and of who computes
    bool               is_full;
};
struct validation;    // one rank's

struct validation *validation_open(const struct validation_setup *setup);
void               validation_close(struct validation *validation);

// Runs the step's transfers on whole numbers; nothing of what the step's memory holds is kept. step: -1 before the
// first, else the last. Returns false, with a reason in the result, when one brought another number than it should.
// Collective.
bool validation_examine(struct validation *validation, int64_t step);

// Likewise of the ops that compute, one of each shape: GEMMs on whole numbers, whose product is known, and all on
// numbers that are the same on every rank, whose outcome has to be. Of experts, only their GEMMs.
bool validation_examine_ops(struct validation *validation, int64_t step);

// Before a step: keeps what is needed to look at it again, of a step that is to be repeated all that it begins with.
// Fails (EXIT_MEMORY) where this rank's host has no memory for it.
status validation_begin(struct validation *validation, int64_t index, bool is_repeated);

// After a step that is to be repeated, whose inputs are still there: runs it again. Returns false, with a reason in the
// result, when the two left different bits, or memory changed since the step before. Collective.
bool validation_repeat(struct validation *validation, int64_t index);

// After a step whose loss or gradient norm is no finite number, which therefore changed no weight: runs it again op by
// op, and puts where that number is from into the result. Collective.
void validation_find(struct validation *validation, int64_t index);

#endif
