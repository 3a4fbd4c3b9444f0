// SPDX-License-Identifier: MIT
// What ranks found that ran the same op on the same numbers, and which of them is wrong.
#ifndef GSWBENCH_VALIDATE_VOTE_H
#define GSWBENCH_VALIDATE_VOTE_H

#include "gswbench/digest.h"
#include "gswbench/comm.h"

enum { OUTCOME_SKETCHES = 2 };    // of operands that an op writes which varies: attention's gradients
struct sketches {
    struct digest of[OUTCOME_SKETCHES];
};

// What a rank tells the others of an op: what it was to compute, with which means, and what it found.
struct outcome {
    uint64_t               task, bits;    // task 0: there is none
    double                 bound;         // within which outcomes agree, as a share of the norm; 0: bit for bit
    int32_t                rank, op;
    int64_t                number;      // of its sketches among those of its list; -1: it repeats
    const struct sketches *sketches;    // these, once they are gathered
};
struct outcomes {
    struct outcome  *list;    // [count]
    struct sketches *sketches;
    int64_t          count, sketch_count;
};

void outcomes_free(struct outcomes *outcomes);
// Those of all ranks, by their tasks, and of one task by rank. Collective.
struct outcomes outcomes_gather(struct comm *comm, const struct outcomes *own);

// How far apart two outcomes of an op that varies are, by the operand in which they differ most, as a share of its
// norm; NaN: an element is no number.
double outcome_distance(const struct outcome *one, const struct outcome *other);

// Of the ranks that had one task.
struct vote {
    const struct outcome *rarest, *common;    // that the fewest agree with, and the most; of several the first
    int64_t               most, count;        // how many agree with the latter; of how many
    double                difference;         // the largest between an outcome and the first one
};

// Returns false when all agree.
bool vote_take(struct vote *vote, const struct outcome *outcomes, int64_t count);
// Who does not agree with the majority is wrong; where there is none, one of the rarest stands for all.
bool vote_is_wrong(const struct vote *vote, const struct outcome *outcome);

#endif
