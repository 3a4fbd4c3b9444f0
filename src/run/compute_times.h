// SPDX-License-Identifier: MIT
// Compute time per step and rank, without waiting, compared between ranks with the same work.
#ifndef GSWBENCH_RUN_COMPUTE_TIMES_H
#define GSWBENCH_RUN_COMPUTE_TIMES_H

#include "internal.h"

struct compute_times {
    int64_t *classes;             // [ranks]: the lowest rank with the same work
    int     *order;               // [ranks], sorted by class
    double  *seconds, *excess;    // [measured], of this rank: time, and excess over the class's median
    int64_t  count;               // measured steps so far
};

// Collective; close frees.
struct compute_times *compute_times_open(const struct plan *plan, struct comm *comm, int64_t steps);
void                  compute_times_close(struct compute_times *times);

// Adds a measured step; seconds is [ranks]. Rank 0 records it.
void compute_times_add(struct compute_times *times, const struct comm_topology *topology, const double *seconds,
                       struct result *result);

// Sets this rank's summary. is_judged: it shares neither cores nor device, so slowness is its own.
void compute_times_summarise(const struct compute_times *times, const struct comm_topology *topology, bool is_judged,
                             struct result_rank *own);

#endif
