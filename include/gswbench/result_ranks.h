// SPDX-License-Identifier: MIT
// Per-rank parts of a result, and mismatches between ranks. An unknown real is NaN.
#ifndef GSWBENCH_RESULT_RANKS_H
#define GSWBENCH_RESULT_RANKS_H

#include <stdint.h>

struct result_rank {
    int64_t rank, node, local_rank, threads;
    char    host[64];
    double  median_seconds;         // measured steps, by the rank's own clock
    double  clock_drift_seconds;    // wall clock minus the step timer's clock, over the run
    int64_t allocated_bytes;
    int64_t processors;    // processors of the host that ranks of the job may use
    double  foreign;       // number of these that other processes took during measured steps; NaN: unknown
    // Compute time of measured steps without waiting for other ranks; NaN: unknown.
    int64_t class;             // lowest rank with the same work
    double compute_seconds;    // median
    double excess;             // median of compute time over class median, minus 1; NaN: alone in its class
    double load_seconds, load_bytes, save_seconds, save_bytes;    // same fields as the job's checkpoint
    double excess_low;    // lower confidence bound of excess; NaN: too few steps, or shared cores or device
};

// Compute time of a range of ranks and steps, beginning at rank and step: maximum over the ranks, mean over the steps.
struct result_compute_time {
    int64_t rank, ranks, step, steps;
    double  seconds, excess;    // as in struct result_rank
};

// A value of the environment that differs from rank 0's.
struct result_deviation {
    char    name[64], value[128];    // "none": not set
    int64_t count;
    char    ranks[96], host[64];    // "1,4-7", truncated to the buffer; host of the first rank
};

#endif
