// SPDX-License-Identifier: MIT
// Opens a step: memory, operands, communicators and dependencies are resolved once.
#include <stdlib.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/step.h"
#include "opening.h"
#include "pauses.h"
#include "tallies.h"

static bool is_transfer(const struct op *op)
{
    return op_is_transfer((enum op_kind)op->kind);
}

// Compute ops must be on the compute stream, because they share the backend's scratch memory.
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
            const struct tally *tally = plan_op_tally(plan, &plan->ops[i]);
            struct op           op    = plan_op_of_rows(plan, &plan->ops[i], tally != NULL ? tally->most : 0);
            int64_t             bytes = backend->ops->scratch_bytes(backend, &op);
            most                      = bytes > most ? bytes : most;
        }
    }
    return most;
}

// Absent operands stay zero.
static void find_buffers(const struct step *step, const struct op *op, struct buffer buffers[OP_OPERANDS])
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bool is_present = slot < op->operand_count && op->operand[slot] >= 0;
        buffers[slot]   = is_present ? step_buffer(step, op->operand[slot]) : (struct buffer){.data = NULL};
        if (is_present) {
            buffers[slot].elements = plan_operand_elements(step->plan, op, slot);
        }
    }
}

// step_prepare made the choice, for buffers of the same alignment.
static void take_prepared(const struct step *step, struct queue_entry *entry)
{
    struct buffer buffers[OP_OPERANDS];
    memcpy(buffers, entry->buffers, sizeof(buffers));
    tallies_align(step->plan, entry->op, buffers);
    status prepared = backend_prepare(step->backend, entry->op, buffers, &entry->prepared);
    if (failed(&prepared)) {
        FATAL(EXIT_INTERNAL, "%s: %s", entry->op->tag.role, prepared.text);
    }
    entry->run = entry->prepared == NULL ? step->backend->ops->run[entry->op->kind] : NULL;
}

static void fill_entry(const struct step *step, struct queue_entry *entry, const struct op *op,
                       const int32_t *positions)
{
    entry->op    = op;
    entry->tally = tallies_of(step->plan, op);
    find_buffers(step, op, entry->buffers);
    if (is_transfer(op)) {
        entry->group = step->groups[op->lane * step->plan->group_count + op->shape.transfer.group];
    } else {
        take_prepared(step, entry);
    }
    entry->wait_count = op->wait_count;
    for (int i = 0; i < op->wait_count; i++) {
        struct queue_entry *awaited = &step->entries[op->wait[i]];
        if (!awaited->is_awaited && step->lanes.streams != NULL) {
            awaited->event = step->lanes.streams->event_open(step->backend, false);
        }
        awaited->is_awaited = true;
        entry->waits[i] =
            (struct wait){.lane = awaited->op->lane, .count = positions[op->wait[i]] + 1, .event = awaited->event};
    }
}

static void fill_queues(struct step *step)
{
    const struct plan *plan      = step->plan;
    struct queue      *queues    = step->lanes.queues;
    int32_t           *positions = memory_allocate((size_t)plan->op_count * sizeof(*positions));    // in its stream
    step->entries                = memory_allocate((size_t)plan->op_count * sizeof(*step->entries));
    step->queued                 = memory_allocate((size_t)plan->op_count * sizeof(struct queue_entry *));
    for (int32_t i = 0; i < plan->op_count; i++) {
        positions[i] = queues[plan->ops[i].lane].count++;
    }
    struct queue_entry **next = step->queued;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        queues[lane].entries = next;
        next += queues[lane].count;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        queues[plan->ops[i].lane].entries[positions[i]] = &step->entries[i];
        fill_entry(step, &step->entries[i], &plan->ops[i], positions);
        step->entries[i].number = i + 1;
    }
    step_set_progress(step, NULL);
    free(positions);
}

static bool has_transfers(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (is_transfer(&plan->ops[i])) {
            return true;
        }
    }
    return false;
}

static void open_device(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    step->begin                           = streams->event_open(step->backend, true);
    step->end                             = streams->event_open(step->backend, true);
    step->is_issued                       = step->comm->ops->is_enqueued || !has_transfers(step->plan);
    if (step->is_issued) {
        issue_open(&step->issue, &step->lanes, step->entries, step->plan->op_count);
    } else {
        staging_open(&step->lanes);
    }
}

status step_visit_ops(const struct plan *plan, step_visit *visit, void *context)
{
    struct step unplaced = {.plan = plan};    // storage addresses with the real alignment, and no memory
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        unplaced.storage[storage] = (void *)(uintptr_t)PLAN_ALIGNMENT;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct buffer buffers[OP_OPERANDS];
        find_buffers(&unplaced, &plan->ops[i], buffers);
        tallies_align(plan, &plan->ops[i], buffers);
        if (!is_transfer(&plan->ops[i])) {
            TRY(visit(context, &plan->ops[i], buffers));
        }
    }
    return OK;
}

static status prepare(void *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct prepared *prepared;
    return backend_prepare(backend, op, buffers, &prepared);
}

status step_prepare(const struct plan *plan, struct backend *backend)
{
    return step_visit_ops(plan, prepare, backend);
}

// Checks again after connections have taken their memory.
static status check_left(const struct step *step, int64_t scratch_bytes)
{
    const struct budget_extra extra = {.scratch = scratch_bytes, .connections = step->connection_bytes};
    return budget_check(step->plan, step->backend, step->comm, &extra);
}

status step_open(struct step **opened, const struct plan *plan, struct backend *backend, struct comm *comm)
{
    TRY(check_ops(plan, backend));
    int64_t scratch_bytes = find_scratch_bytes(plan, backend);
    TRY(budget_check(plan, backend, comm, &(struct budget_extra){.scratch = scratch_bytes}));

    struct step *step = memory_allocate(sizeof(*step));
    *step             = (struct step){
                    .plan    = plan,
                    .backend = backend,
                    .comm    = comm,
                    .lanes   = {
                          .backend = backend, .streams = backend->ops->streams, .comm_ops = comm->ops, .rank = comm->topology.rank}};
    groups_open(step);
    status left = comm->ops->is_enqueued ? check_left(step, scratch_bytes) : OK;
    if (failed(&left)) {
        groups_close(step);
        free(step);
        return left;
    }
    *opened = step;
    storages_open(step);
    groups_share(step);
    backend_reserve_scratch(backend, scratch_bytes);
    step->lanes.tallies = tallies_open(plan, backend);
    fill_queues(step);
    if (step->lanes.streams != NULL) {
        open_device(step);
    }
    if (backend->ops->is_device) {
        step_warm(step);
    }
    if (!step->is_issued) {
        lanes_open(&step->lanes);
    }
    return OK;
}

static void close_device(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    step_forget(step);
    if (step->lanes.pauses != NULL) {
        pauses_close(&step->lanes, step->lanes.pauses);
    }
    if (step->is_issued) {
        issue_close(&step->issue);
    } else {
        staging_close(&step->lanes);
    }
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        if (step->entries[i].event != NULL) {
            streams->event_close(step->entries[i].event);
        }
    }
    streams->event_close(step->begin);
    streams->event_close(step->end);
}

void step_close(struct step *step)
{
    step_trace(step, NULL);
    if (!step->is_issued) {
        lanes_close(&step->lanes);
    }
    if (step->lanes.streams != NULL) {
        close_device(step);
    }
    groups_close(step);
    storages_close(step);
    tallies_close(step->lanes.tallies);
    free(step->lanes.check);
    free(step->entries);
    free(step->queued);
    free(step);
}
