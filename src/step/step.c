// SPDX-License-Identifier: MIT
// Makes a plan ready to run: memory for its storages, operands, communicators and waits, all looked up once.
#include "gswbench/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/fatal.h"
#include "gswbench/units.h"
#include "internal.h"

struct step {
    const struct plan  *plan;
    struct backend     *backend;
    struct comm        *comm;
    void               *storage[STORAGE_COUNT];    // NULL: nothing in it
    int64_t             storage_bytes[STORAGE_COUNT];
    struct comm_group **groups;    // [LANE_COUNT][plan->group_count], NULL: the lane does not use the group
    struct work        *works;     // [plan->op_count], lane by lane
    struct lanes        lanes;
};

static bool is_transfer(const struct op *op)
{
    return op_is_transfer((enum op_kind)op->kind);
}

// A compute op on another lane would share the backend's scratch with the compute lane.
static status check_ops(const struct plan *plan, const struct backend *backend)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        char             name[160];
        if (is_transfer(op)) {
            continue;
        }
        if (backend->ops->run[op->kind] == NULL) {
            return fail("[run] backend = %s: does not execute %s", backend->ops->name,
                        plan_op_name(plan, i, name, sizeof(name)));
        }
        if (op->lane != LANE_COMPUTE) {
            FATAL(EXIT_INTERNAL, "%s computes on the %s lane", plan_op_name(plan, i, name, sizeof(name)),
                  op_lane_name((enum lane)op->lane));
        }
    }
    return OK;
}

static int64_t find_scratch_bytes(const struct plan *plan, struct backend *backend)
{
    int64_t most = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (!is_transfer(&plan->ops[i])) {
            int64_t bytes = backend->ops->scratch_bytes(backend, &plan->ops[i]);
            most          = bytes > most ? bytes : most;
        }
    }
    return most;
}

// What a rank needs and has of the memory that it may share with the other ranks of its host.
struct budget {
    int64_t needed, available;
};

static status describe_shortage(const struct plan *plan, const struct budget *budget, int64_t scratch_bytes,
                                int sharing)
{
    char   table[640], amount[32], other[32];
    size_t used = 0;
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        used += (size_t)snprintf(table + used, sizeof(table) - used, "\n  %-12s %12s",
                                 plan_storage_name((enum storage)storage),
                                 units_bytes(amount, sizeof(amount), (double)plan->storage_bytes[storage]));
    }
    snprintf(table + used, sizeof(table) - used, "\n  %-12s %12s", "scratch",
             units_bytes(amount, sizeof(amount), (double)scratch_bytes));
    return fail_as(EXIT_MEMORY,
                   "the plan does not fit: %s needed by %d rank%s in this memory, %s available. A rank needs%s\n"
                   "  take a smaller train.micro_batch or run.layers, or more recompute",
                   units_bytes(amount, sizeof(amount), (double)budget->needed), sharing, sharing == 1 ? "" : "s",
                   units_bytes(other, sizeof(other), (double)budget->available), table);
}

// All ranks look before any of them allocates, and all fail when one does not fit.
static status check_memory(const struct plan *plan, struct backend *backend, struct comm *comm, int64_t scratch_bytes)
{
    int           sharing = backend->ops->is_device ? 1 : comm->place.local_ranks;
    struct budget own     = {.needed = scratch_bytes, .available = backend->ops->available_bytes(backend)};
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        own.needed += plan->storage_bytes[storage];
    }
    own.needed *= sharing;

    struct budget *all      = memory_allocate((size_t)comm->place.ranks * sizeof(*all));
    int            tightest = comm->place.rank;
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int rank = 0; rank < comm->place.ranks && own.needed <= own.available; rank++) {
        if (all[rank].needed > all[rank].available) {
            tightest = rank;
            break;
        }
    }
    struct budget worst = all[tightest];
    free(all);
    if (worst.needed <= worst.available) {
        return OK;
    }
    return tightest == comm->place.rank ? describe_shortage(plan, &own, scratch_bytes, sharing)
                                        : fail_as(EXIT_MEMORY, "the plan does not fit on rank %d", tightest);
}

static int32_t find_group(const struct plan *plan, uint32_t axes)
{
    for (int32_t i = 0; i < plan->group_count; i++) {
        if (plan->groups[i].axes == axes) {
            return i;
        }
    }
    return -1;
}

// Opened lane by lane and axes by axes: the same order on every rank, whatever its plan uses first.
static void open_groups(struct step *step)
{
    const struct plan *plan  = step->plan;
    size_t             count = (size_t)(LANE_COUNT * plan->group_count);
    bool              *used  = memory_allocate(count * sizeof(*used));
    step->groups             = memory_allocate(count * sizeof(struct comm_group *));
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (is_transfer(&plan->ops[i])) {
            used[plan->ops[i].lane * plan->group_count + plan->ops[i].shape.transfer.group] = true;
        }
    }
    for (uint32_t i = 0; i < (uint32_t)LANE_COUNT << AXIS_COUNT; i++) {
        int     lane  = (int)(i >> AXIS_COUNT);
        int32_t group = find_group(plan, i & ((1u << AXIS_COUNT) - 1));
        if (group >= 0 && used[lane * plan->group_count + group]) {
            step->groups[lane * plan->group_count + group] =
                step->comm->ops->group_open(step->comm, plan->groups[group].ranks, plan->groups[group].size, lane);
        }
    }
    free(used);
}

static void fill_work(const struct step *step, struct work *work, const struct op *op, const int32_t *positions)
{
    work->op = op;
    if (is_transfer(op)) {
        work->group = step->groups[op->lane * step->plan->group_count + op->shape.transfer.group];
    } else {
        work->run = step->backend->ops->run[op->kind];
    }
    for (int i = 0; i < op->operand_count; i++) {
        if (op->operand[i] >= 0) {
            work->buffers[i] = step_buffer(step, op->operand[i]);
        }
    }
    work->wait_count = op->wait_count;
    for (int i = 0; i < op->wait_count; i++) {
        const struct op *awaited = &step->plan->ops[op->wait[i]];
        work->waits[i]           = (struct wait){.lane = awaited->lane, .count = positions[op->wait[i]] + 1};
    }
}

static void fill_queues(struct step *step)
{
    const struct plan *plan      = step->plan;
    struct queue      *queues    = step->lanes.queues;
    int32_t           *positions = memory_allocate((size_t)plan->op_count * sizeof(*positions));    // in its lane
    step->works                  = memory_allocate((size_t)plan->op_count * sizeof(*step->works));
    for (int32_t i = 0; i < plan->op_count; i++) {
        positions[i] = queues[plan->ops[i].lane].count++;
    }
    struct work *next = step->works;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        queues[lane].works = next;
        next += queues[lane].count;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        fill_work(step, &queues[op->lane].works[positions[i]], op, positions);
        for (int j = 0; j < op->wait_count; j++) {
            queues[plan->ops[op->wait[j]].lane].works[positions[op->wait[j]]].is_awaited = true;
        }
    }
    free(positions);
}

status step_open(struct step **opened, const struct plan *plan, struct backend *backend, struct comm *comm)
{
    TRY(check_ops(plan, backend));
    int64_t scratch_bytes = find_scratch_bytes(plan, backend);
    TRY(check_memory(plan, backend, comm, scratch_bytes));

    struct step *step = memory_allocate(sizeof(*step));
    *opened           = step;
    step->plan        = plan;
    step->backend     = backend;
    step->comm        = comm;
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        step->storage_bytes[storage] = plan->storage_bytes[storage];
        if (plan->storage_bytes[storage] > 0) {
            step->storage[storage] = backend_allocate(backend, plan->storage_bytes[storage]);
        }
    }
    backend_reserve_scratch(backend, scratch_bytes);
    open_groups(step);
    fill_queues(step);
    step->lanes.backend  = backend;
    step->lanes.comm_ops = comm->ops;
    step->lanes.rank     = comm->place.rank;
    lanes_open(&step->lanes);
    return OK;
}

void step_close(struct step *step)
{
    lanes_close(&step->lanes);
    for (int32_t i = 0; i < LANE_COUNT * step->plan->group_count; i++) {
        if (step->groups[i] != NULL) {
            step->comm->ops->group_close(step->groups[i]);
        }
    }
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        if (step->storage[storage] != NULL) {
            backend_release(step->backend, step->storage[storage], step->storage_bytes[storage]);
        }
    }
    free(step->groups);
    free(step->works);
    free(step);
}

void step_run(struct step *step)
{
    lanes_run(&step->lanes);
}

struct buffer step_buffer(const struct step *step, int32_t tensor)
{
    const struct tensor *shape = &step->plan->tensors[tensor];
    return (struct buffer){.data     = (char *)step->storage[shape->storage] + shape->offset,
                           .elements = shape->elements,
                           .dtype    = shape->dtype};
}

void step_read(const struct step *step, int32_t tensor, void *to)
{
    step->backend->ops->download(step->backend, to, step_buffer(step, tensor).data, step->plan->tensors[tensor].bytes);
}

void step_write(const struct step *step, int32_t tensor, const void *from)
{
    step->backend->ops->upload(step->backend, step_buffer(step, tensor).data, from, step->plan->tensors[tensor].bytes);
}

int64_t step_storage_bytes(const struct step *step, enum storage storage)
{
    return step->storage_bytes[storage];
}
