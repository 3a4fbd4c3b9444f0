// SPDX-License-Identifier: MIT
// How long each rank computes in each step without waiting for others, against ranks that have the same to do.
#ifndef GSWBENCH_RUN_COMPUTE_TIMES_H
#define GSWBENCH_RUN_COMPUTE_TIMES_H

#include "internal.h"

struct compute_times {
    int64_t *classes;             // [ranks]: the lowest rank whose work is alike
    int     *order;               // [ranks], class by class
    double  *seconds, *excess;    // [measured], of this rank: its seconds, and by how much more than its class's median
    int64_t  count;               // measured steps so far
};

// Collective; close frees.
struct compute_times *compute_times_open(const struct plan *plan, struct comm *comm, int64_t steps);
void                  compute_times_close(struct compute_times *times);

// A measured step, of which seconds are [ranks]; rank 0 puts it into the result.
void compute_times_add(struct compute_times *times, const struct comm_place *place, const double *seconds,
                       struct result *result);

// Sets what is known of this rank. is_judged: its processors or its device are its own, so that what it takes too long
// is no other rank's doing.
void compute_times_summarise(const struct compute_times *times, const struct comm_place *place, bool is_judged,
                             struct result_rank *own);

#endif
