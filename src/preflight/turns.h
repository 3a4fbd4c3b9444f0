// SPDX-License-Identifier: MIT
// Compute speed of ranks that take turns on shared cores, where clocks differ between turns. Each round relates a rank
// to the median of all ranks, and the median over rounds counts. Within a round it is the median over probes, since a
// probe's speed may depend on its memory pages.
#ifndef GSWBENCH_PREFLIGHT_TURNS_H
#define GSWBENCH_PREFLIGHT_TURNS_H

#include <stdint.h>

struct turns {
    int64_t ranks, probes, rounds;
    double *shares;    // [rounds][ranks], relative to the round's median
    double *level;     // [probes]: the highest median of a round
};

void turns_open(struct turns *turns, int64_t ranks, int64_t probes);
void turns_close(struct turns *turns);

// Adds a round. rates: [ranks][stride], starting with the probes.
void turns_add(struct turns *turns, const double *rates, int64_t stride);

// A rank's rate with a probe at the best level; standard error of its ratio in percent, infinite before the second
// round.
double turns_rate(const struct turns *turns, int64_t rank, int64_t probe);
double turns_error(const struct turns *turns, int64_t rank);

#endif
