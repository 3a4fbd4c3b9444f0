// SPDX-License-Identifier: MIT
// Compares the compute time of each step between ranks with the same work, which form a class. After each step, a rank
// learns the times of all ranks. It stores only its own time, and by how much this time exceeds the median of its
// class.
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"
#include "gswbench/verify.h"

// Accepted probability that a job without a slow rank reports one.
static const double false_alarm = 0.01;

// Returns a hash of pipeline stage and FLOPs per phase, which is equal on ranks with the same work. Ops without FLOPs,
// such as quantization and AdamW, are left out, because they differ slightly between such ranks.
static uint64_t describe_work(const struct plan *plan)
{
    struct account *account = memory_allocate(sizeof(*account));
    struct {
        int64_t place[AXIS_COUNT];
        double  flops[PHASE_COUNT];
    } work;
    mesh_coordinates(&plan->mesh, plan->rank, work.place);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        work.place[axis] = axis == AXIS_PP ? work.place[axis] : 0;
    }
    plan_account(plan, account);
    memcpy(work.flops, account->flops, sizeof(work.flops));
    free(account);
    return XXH3_64bits(&work, sizeof(work));
}

struct compute_times *compute_times_open(const struct plan *plan, struct comm *comm, int64_t steps)
{
    int                   ranks = comm->topology.ranks, ordered = 0;
    uint64_t              own   = describe_work(plan);
    struct compute_times *times = memory_allocate(sizeof(*times));
    *times                      = (struct compute_times){.classes = memory_allocate((size_t)ranks * sizeof(int64_t)),
                                                         .order   = memory_allocate((size_t)ranks * sizeof(int)),
                                                         .seconds = memory_allocate((size_t)steps * sizeof(double)),
                                                         .excess  = memory_allocate((size_t)steps * sizeof(double))};
    uint64_t *work              = comm_gather(comm, &own, sizeof(own));
    memset(times->classes, -1, (size_t)ranks * sizeof(*times->classes));
    for (int first = 0; first < ranks; first++) {
        bool is_new = times->classes[first] < 0;
        for (int rank = first; rank < ranks && is_new; rank++) {
            if (work[rank] == work[first]) {
                times->classes[rank]    = first;
                times->order[ordered++] = rank;
            }
        }
    }
    free(work);
    return times;
}

void compute_times_close(struct compute_times *times)
{
    free(times->classes);
    free(times->order);
    free(times->seconds);
    free(times->excess);
    free(times);
}

void compute_times_add(struct compute_times *times, const struct comm_topology *topology, const double *seconds,
                       struct result *result)
{
    int     ranks  = topology->ranks;
    double *excess = memory_allocate((size_t)ranks * sizeof(*excess));
    double *values = memory_allocate((size_t)ranks * sizeof(*values));
    for (int first = 0, end = 0; first < ranks; first = end) {    // in `order`, the ranks of a class are consecutive
        for (; end < ranks && times->classes[times->order[end]] == times->classes[times->order[first]]; end++) {
            values[end - first] = seconds[times->order[end]];
        }
        double median = end - first > 1 ? statistics_lower_median(values, end - first) : NAN;
        for (int i = first; i < end; i++) {
            excess[times->order[i]] = seconds[times->order[i]] / median - 1;
        }
    }
    times->seconds[times->count]  = seconds[topology->rank];
    times->excess[times->count++] = excess[topology->rank];
    if (topology->rank == 0 && ranks > 1) {
        result_add_compute_times(result, seconds, excess, ranks);
    }
    free(values);
    free(excess);
}

void compute_times_summarise(const struct compute_times *times, const struct comm_topology *topology, bool is_judged,
                             struct result_rank *own)
{
    own->class           = times->classes[topology->rank];
    own->compute_seconds = statistics_median(times->seconds, times->count);
    own->excess          = statistics_median(times->excess, times->count);
    own->excess_low      = is_judged && isfinite(own->excess)
                               ? statistics_minimum_median(times->excess, times->count, false_alarm / topology->ranks)
                               : NAN;
}
