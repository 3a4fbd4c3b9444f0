// SPDX-License-Identifier: MIT
// What repeating a step and finding a number's origin share.
#ifndef GSWBENCH_VALIDATE_INTERNAL_H
#define GSWBENCH_VALIDATE_INTERNAL_H

#include "gswbench/validate.h"
#include "optimizer.h"
#include "spread.h"
#include "state.h"

struct validation {
    struct validation_setup setup;
    struct state            small;      // before the latest step
    struct sample           sample;     // before the latest step that is repeated
    struct spread           spread;     // of its two runs
    struct digest         **first;      // [tensors]: what the first run left; NULL: it is not compared
    uint64_t               *hashes;     // [tensors], after the latest step that was repeated
    int64_t                 hashed;     // that step, if hashes were taken; -2: none
    int32_t                 changed;    // the tensor whose bits changed since; -1: none
};

// What a rank has to say; "": nothing.
struct complaint {
    char text[200];
};

// What a rank found when it compared two runs.
struct found {
    struct complaint complaint;     // of the first tensor that is wrong
    double           difference;    // the largest, as a share of the norm
};

// complaint.c: the words of the first rank that has some become all ranks'. Returns that rank; -1: none has.
// Collective.
int complaint_share(struct comm *comm, struct complaint *complaint);

// ops.c: what the outcome of an op depends on, in a number; 0: it is not run alone.
uint64_t ops_task(const struct plan *plan, const struct op *op, uint64_t kin);

// Adds a reason for which the run is invalid; rank -1: of no one rank.
void validation_add_reason(const struct validation *validation, const char *id, int rank, int64_t step,
                           const char *message);

#endif
