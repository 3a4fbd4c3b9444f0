// SPDX-License-Identifier: MIT
// Checks that every rank's plan fits before any rank allocates. Ranks on the same device, or on the same host, share
// memory.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "opening.h"

// Bytes that a rank needs, and the memory that it shares with other ranks.
struct budget {
    int64_t needed, available;
    int64_t node;
    char    device[64];    // "": host memory
};

static struct budget own_budget(const struct plan *plan, struct backend *backend, const struct comm_topology *topology,
                                int64_t scratch_bytes)
{
    struct budget budget = {.needed    = plan_total_bytes(plan) + scratch_bytes,
                            .available = backend->ops->available_bytes(backend),
                            .node      = topology->node};
    if (backend->ops->device_id != NULL) {
        backend->ops->device_id(backend, budget.device, sizeof(budget.device));
    }
    return budget;
}

// Sums the needs of the ranks that share the given rank's memory.
static struct budget sum_sharers(const struct budget *all, int ranks, int rank, int *sharers)
{
    struct budget sum = all[rank];
    sum.needed        = 0;
    *sharers          = 0;
    for (int other = 0; other < ranks; other++) {
        if (all[other].node == sum.node && strcmp(all[other].device, sum.device) == 0) {
            sum.needed += all[other].needed;
            sum.available = all[other].available < sum.available ? all[other].available : sum.available;
            ++*sharers;
        }
    }
    return sum;
}

static status describe_shortage(const struct plan *plan, const struct budget *shared, const struct budget_extra *extra,
                                int sharers)
{
    char   table[640], amount[32], other[32];
    size_t used = 0;
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        used += (size_t)snprintf(table + used, sizeof(table) - used, "\n  %-12s %12s",
                                 plan_storage_name((enum storage)storage),
                                 number_bytes(amount, sizeof(amount), (double)plan->storage_bytes[storage]));
    }
    if (extra->connections > 0) {
        used += (size_t)snprintf(table + used, sizeof(table) - used, "\n  %-12s %12s, taken already", "connections",
                                 number_bytes(amount, sizeof(amount), (double)extra->connections));
    }
    snprintf(table + used, sizeof(table) - used, "\n  %-12s %12s", "scratch",
             number_bytes(amount, sizeof(amount), (double)extra->scratch));
    return fail_as(EXIT_MEMORY,
                   "the plan does not fit: %s needed by %d rank%s in this memory, %s available. A rank needs%s\n  "
                   "lower train.micro_batch or run.layers, or use more recompute",
                   number_bytes(amount, sizeof(amount), (double)shared->needed), sharers, sharers == 1 ? "" : "s",
                   number_bytes(other, sizeof(other), (double)shared->available), table);
}

status budget_check(const struct plan *plan, struct backend *backend, struct comm *comm,
                    const struct budget_extra *extra)
{
    int            ranks = comm->topology.ranks, own = comm->topology.rank;
    struct budget  mine = own_budget(plan, backend, &comm->topology, extra->scratch);
    status         fits = OK;
    struct budget *all  = comm_gather(comm, &mine, sizeof(mine));
    // The last error wins: the own rank is checked last because its message has the details, after the others from last
    // to first.
    for (int i = ranks; i >= 0; i--) {
        int           rank = i > 0 ? i - 1 : own, sharers;
        struct budget sum  = sum_sharers(all, ranks, rank, &sharers);
        if (sum.needed > sum.available) {
            fits = rank == own ? describe_shortage(plan, &sum, extra, sharers)
                               : fail_as(EXIT_MEMORY, "the plan does not fit on rank %d", rank);
        }
    }
    free(all);
    return fits;
}
