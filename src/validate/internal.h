// SPDX-License-Identifier: MIT
// What repeating a step and finding a number's origin share.
#ifndef GSWBENCH_VALIDATE_INTERNAL_H
#define GSWBENCH_VALIDATE_INTERNAL_H

#include "gswbench/validate.h"
#include "state.h"

struct validation {
    struct validation_setup setup;
    struct state            results;    // of the latest step's begin
    struct state            begin;      // of a step that is repeated
    uint64_t               *hashes;     // [tensors], after the latest step that was repeated
    uint64_t               *again;      // [tensors]
    int64_t                 hashed;     // the step after which hashes are taken; -2: none
    int32_t                 changed;    // the tensor whose bits changed since; -1: none
};

// What a rank has to say; "": nothing.
struct complaint {
    char text[200];
};

// complaint.c: the words of the first rank that has some become all ranks'. Returns that rank; -1: none has.
// Collective.
int complaint_share(struct comm *comm, struct complaint *complaint);

// Adds a reason for which the run is invalid; rank -1: of no one rank.
void validation_add_reason(const struct validation *validation, const char *id, int rank, int64_t step,
                           const char *message);

#endif
