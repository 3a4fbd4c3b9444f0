// SPDX-License-Identifier: MIT
// Compares the outputs of ranks that ran the same op on the same inputs, and finds the wrong one.
#ifndef GSWBENCH_VALIDATE_VOTE_H
#define GSWBENCH_VALIDATE_VOTE_H

#include "gswbench/digest.h"
#include "gswbench/comm.h"

enum { OUTCOME_SKETCHES = 2 };    // outputs of a nondeterministic op: attention's gradients
struct sketches {
    struct digest of[OUTCOME_SKETCHES];
};

// An op's output on one rank: which task it was, and the result.
struct outcome {
    uint64_t               task, bits;    // task 0: an empty entry
    double                 bound;         // tolerance relative to the norm; 0: same bits
    int32_t                rank, op;
    int64_t                number;      // index of its sketches in the rank's list; -1: deterministic
    const struct sketches *sketches;    // set after gathering
};
struct outcomes {
    struct outcome  *list;    // [count]
    struct sketches *sketches;
    int64_t          count, sketch_count;
};

void outcomes_free(struct outcomes *outcomes);
// Gathers all ranks' outputs, sorted by task, then rank. Collective.
struct outcomes outcomes_gather(struct comm *comm, const struct outcomes *own);

// Maximum difference between two outputs of a nondeterministic op over its operands, relative to the norm; NaN: an
// element is NaN.
double outcome_distance(const struct outcome *one, const struct outcome *other);

// Vote of the ranks that ran one task.
struct vote {
    // Outputs with the fewest and the most agreeing ranks; the first of several.
    const struct outcome *rarest, *common;
    int64_t               most, count;    // ranks that agree with common, of count
    double                difference;     // maximum difference to the first output
};

// Returns false if all agree.
bool vote_take(struct vote *vote, const struct outcome *outcomes, int64_t count);
// An output that disagrees with the majority is wrong. Without a majority, the rarest output is.
bool vote_is_wrong(const struct vote *vote, const struct outcome *outcome);

#endif
