// SPDX-License-Identifier: MIT
// State shared by the parts of validation.
#ifndef GSWBENCH_VALIDATE_INTERNAL_H
#define GSWBENCH_VALIDATE_INTERNAL_H

#include "gswbench/validate.h"
#include "optimizer.h"
#include "spread.h"
#include "state.h"

struct validation {
    struct validation_setup setup;
    struct state            small;      // state before the latest step
    struct sample           sample;     // optimizer state before the latest repeated step
    struct spread           spread;     // allowed differences between its two runs
    struct digest         **first;      // [tensors], after the first run; NULL: not compared
    uint64_t               *hashes;     // [tensors], after the latest repeated step
    int64_t                 hashed;     // index of that step; -2: no hashes taken
    int32_t                 changed;    // a tensor whose bits changed since then; -1: none
};

// A rank's error; "": none.
struct complaint {
    char text[200];
};

struct found {
    struct complaint complaint;     // about the first wrong tensor
    double           difference;    // maximum, relative to the norm
};

// complaint.c: every rank gets the error of the lowest rank that has one. Returns that rank, or -1. Collective.
int complaint_share(struct comm *comm, struct complaint *complaint);

// ops.c: hash of everything that determines an op's output; 0: the op cannot run in isolation.
uint64_t ops_task(const struct plan *plan, const struct op *op, uint64_t kin);

// Adds a reason that makes the run invalid. rank -1: not about one rank.
void validation_add_reason(const struct validation *validation, const char *id, int rank, int64_t step,
                           const char *message);

#endif
