// SPDX-License-Identifier: MIT
// What a result says of each rank, and of ranks that differ. A real that is not known is NaN.
#ifndef GSWBENCH_RESULT_RANKS_H
#define GSWBENCH_RESULT_RANKS_H

#include <stdint.h>

struct result_rank {
    int64_t rank, node, local_rank, threads;
    char    host[64];
    double  median_seconds;         // of its own measured steps
    double  clock_drift_seconds;    // of the wall clock against the clock that times steps, over the run
    int64_t allocated_bytes;
    int64_t processors;    // of its machine, that ranks of the job may use
    double  foreign;       // how many of them others took while steps were measured; NaN: not known
    // Of its measured steps, without waiting for other ranks; NaN: not known.
    int64_t class;             // the lowest rank that computes the same
    double compute_seconds;    // median
    double excess;    // median of what it takes longer than the median of its class, as a share; NaN: it is alone
    double load_seconds, load_bytes, save_seconds, save_bytes;    // as of the job's checkpoint
    double excess_low;    // what that is beyond doubt; NaN: too few steps, or not its own doing
};

// What some ranks computed in some measured steps, from the first of each on: the mean over the steps of the longest.
struct result_compute_time {
    int64_t rank, ranks, step, steps;
    double  seconds, excess;    // as of a rank
};

// Ranks that have something of the environment otherwise than rank 0.
struct result_deviation {
    char    name[64], value[128];    // "none": they do not have it
    int64_t count;
    char    ranks[96], host[64];    // "1,4-7", as many as there is room for; of the first
};

#endif
