// SPDX-License-Identifier: MIT
// How fast ranks compute that share cores, whose clock is not the same in every turn: a round sets each rank against
// the median of all in that round, and a rank's median over the rounds says what it is worth. In a round the middle one
// of its probes counts, since how fast one of them is may depend on which pages of memory the process was given.
#ifndef GSWBENCH_PREFLIGHT_TURNS_H
#define GSWBENCH_PREFLIGHT_TURNS_H

#include <stdint.h>

struct turns {
    int64_t ranks, probes, rounds;
    double *shares;    // [rounds][ranks] of the round's median
    double *level;     // [probes]: the most that a round's median was
};

void turns_open(struct turns *turns, int64_t ranks, int64_t probes);
void turns_close(struct turns *turns);

// A round: what each rank reached with each probe, [ranks][stride], of which the first ones are the probes.
void turns_add(struct turns *turns, const double *rates, int64_t stride);

// What a rank reaches with a probe when all are at their best; and how far its share may be off, in percent: the
// standard error of the median, infinite before the second round.
double turns_rate(const struct turns *turns, int64_t rank, int64_t probe);
double turns_error(const struct turns *turns, int64_t rank);

#endif
