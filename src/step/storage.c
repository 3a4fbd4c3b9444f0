// SPDX-License-Identifier: MIT
// Allocates the step's storages (enum storage) after checking that every rank's plan fits in memory. If the
// communicator can allocate memory, it allocates the storages that communication ops use, and the backend the others.
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/text.h"
#include "internal.h"

static bool has_communications(const struct plan *plan, int storage)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        for (int slot = 0; slot < op->operand_count && op_is_communication((enum op_kind)op->kind); slot++) {
            if (op->operand[slot] >= 0 && (int)plan->tensors[op->operand[slot]].storage == storage) {
                return true;
            }
        }
    }
    return false;
}

void storages_open(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        int64_t bytes                = step->plan->storage_bytes[storage];
        step->storage_bytes[storage] = bytes;
        step->is_lent[storage] = bytes > 0 && step->comm->memory != NULL && has_communications(step->plan, storage);
        if (step->is_lent[storage]) {
            step->storage[storage] = step->comm->memory->allocate(step->comm, bytes);
            backend_adopt(step->backend, step->storage[storage], bytes);
        } else if (bytes > 0) {
            step->storage[storage] = backend_allocate(step->backend, bytes);
        }
    }
}

void storages_close(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        if (step->is_lent[storage]) {
            step->comm->memory->release(step->comm, step->storage[storage]);
            backend_disown(step->backend, step->storage_bytes[storage]);
        } else if (step->storage[storage] != NULL) {
            backend_release(step->backend, step->storage[storage], step->storage_bytes[storage]);
        }
    }
}

void storages_clear(struct step *step)
{
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        if (step->storage[storage] != NULL && step->backend->ops->clear != NULL) {
            step->backend->ops->clear(step->backend, step->storage[storage], step->storage_bytes[storage]);
        } else if (step->storage[storage] != NULL) {
            memset(step->storage[storage], 0, (size_t)step->storage_bytes[storage]);
        }
    }
}

// The bytes that a rank needs, and the bytes available in its memory. node and device identify this memory, which
// several ranks can share.
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

// Sums the needed bytes over the ranks that share the memory of `rank`. Sets *sharers to their number.
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

// Adds to the error why no GPU is used: most published jobs do not fit in host memory.
static status explain_host(const struct backend *backend, status shortage)
{
    const char *reason = backend->choice[0] == '\0' ? "this gswbench was built without CUDA" : backend->choice;
    if (strcmp(backend->ops->name, "host") != 0) {
        return shortage;
    }
    status all =
        fail_as(EXIT_MEMORY, "no GPU: %s (under Slurm, ask with --gres=gpu:8), so the processor was taken", reason);
    status_add(&all, shortage);
    status_add(&all,
               fail_as(EXIT_MEMORY, "without a GPU: gswbench predict CONFIG, or a small job: gswbench tiny-llama"));
    return all;
}

static status describe_shortage(const struct plan *plan, const struct budget *shared, const struct budget_extra *extra,
                                const struct backend *backend, int sharers)
{
    char               amount[32], other[32];
    struct text_buffer parts = {.text = NULL};
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        text_append(&parts, "%s %s, ", plan_storage_name((enum storage)storage),
                    number_bytes(amount, sizeof(amount), (double)plan->storage_bytes[storage]));
    }
    if (extra->connections > 0) {
        text_append(&parts, "connections %s (taken already), ",
                    number_bytes(amount, sizeof(amount), (double)extra->connections));
    }
    text_append(&parts, "scratch %s", number_bytes(amount, sizeof(amount), (double)extra->scratch));
    status shortage =
        fail_as(EXIT_MEMORY,
                "the plan does not fit: %s needed by %d rank%s in this memory, %s available; a rank needs %s: lower "
                "train.micro_batch or run.layers, or use more recompute",
                number_bytes(amount, sizeof(amount), (double)shared->needed), sharers, sharers == 1 ? "" : "s",
                number_bytes(other, sizeof(other), (double)shared->available), parts.text);
    text_free(&parts);
    return explain_host(backend, shortage);
}

status budget_check(const struct plan *plan, struct backend *backend, struct comm *comm,
                    const struct budget_extra *extra)
{
    int            ranks = comm->topology.ranks, own = comm->topology.rank;
    struct budget  mine = own_budget(plan, backend, &comm->topology, extra->scratch);
    struct budget *all  = memory_allocate((size_t)ranks * sizeof(*all));
    status         fits = OK;
    comm->ops->gather_all(comm, &mine, all, sizeof(mine));
    // Checks the ranks from last to first, then this rank again. The last error is kept, because the message about this
    // rank has the details.
    for (int i = ranks; i >= 0; i--) {
        int           rank = i > 0 ? i - 1 : own, sharers;
        struct budget sum  = sum_sharers(all, ranks, rank, &sharers);
        if (sum.needed > sum.available) {
            fits = rank == own ? describe_shortage(plan, &sum, extra, backend, sharers)
                               : fail_as(EXIT_MEMORY, "the plan does not fit on rank %d", rank);
        }
    }
    free(all);
    return fits;
}
