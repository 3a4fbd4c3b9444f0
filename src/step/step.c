// SPDX-License-Identifier: MIT
// Makes a plan ready to run: memory for its storages, operands, communicators and waits, all looked up once.
#include "gswbench/step.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/fatal.h"
#include "internal.h"

struct step {
    const struct plan  *plan;
    struct backend     *backend;
    struct comm        *comm;
    void               *storage[STORAGE_COUNT];    // NULL: nothing in it
    int64_t             storage_bytes[STORAGE_COUNT];
    struct comm_group **groups;    // [LANE_COUNT][plan->group_count], NULL: the lane does not use the group
    struct work        *works;     // [plan->op_count]
    struct work       **queued;    // the same, lane by lane
    struct lanes        lanes;

    // Of a device only. One thread issues all ops, or each lane has its own; and events around the latest step.
    bool         is_issued, is_captured;
    struct issue issue;
    void        *begin, *end;
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

// An absent operand's stays zero.
static void find_buffers(const struct step *step, const struct op *op, struct buffer buffers[OP_OPERANDS])
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bool is_present = slot < op->operand_count && op->operand[slot] >= 0;
        buffers[slot]   = is_present ? step_buffer(step, op->operand[slot]) : (struct buffer){.data = NULL};
    }
}

static void fill_work(const struct step *step, struct work *work, const struct op *op, const int32_t *positions)
{
    work->op = op;
    if (is_transfer(op)) {
        work->group = step->groups[op->lane * step->plan->group_count + op->shape.transfer.group];
    } else {
        work->run = step->backend->ops->run[op->kind];
    }
    find_buffers(step, op, work->buffers);
    work->wait_count = op->wait_count;
    for (int i = 0; i < op->wait_count; i++) {
        struct work *awaited = &step->works[op->wait[i]];
        if (!awaited->is_awaited && step->lanes.streams != NULL) {
            awaited->event = step->lanes.streams->event_open(step->backend, false);
        }
        awaited->is_awaited = true;
        work->waits[i] =
            (struct wait){.lane = awaited->op->lane, .count = positions[op->wait[i]] + 1, .event = awaited->event};
    }
}

static void fill_queues(struct step *step)
{
    const struct plan *plan      = step->plan;
    struct queue      *queues    = step->lanes.queues;
    int32_t           *positions = memory_allocate((size_t)plan->op_count * sizeof(*positions));    // in its lane
    step->works                  = memory_allocate((size_t)plan->op_count * sizeof(*step->works));
    step->queued                 = memory_allocate((size_t)plan->op_count * sizeof(struct work *));
    for (int32_t i = 0; i < plan->op_count; i++) {
        positions[i] = queues[plan->ops[i].lane].count++;
    }
    struct work **next = step->queued;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        queues[lane].works = next;
        next += queues[lane].count;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        queues[plan->ops[i].lane].works[positions[i]] = &step->works[i];
        fill_work(step, &step->works[i], &plan->ops[i], positions);
    }
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
        issue_open(&step->issue, &step->lanes, step->works, step->plan->op_count);
    } else {
        staging_open(&step->lanes);
    }
}

status step_prepare(const struct plan *plan, struct backend *backend)
{
    struct step unplaced = {.plan = plan};    // storages as aligned as they will be, and nowhere
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        unplaced.storage[storage] = (void *)(uintptr_t)PLAN_ALIGNMENT;
    }
    for (int32_t i = 0; i < plan->op_count && backend->ops->prepare != NULL; i++) {
        struct buffer buffers[OP_OPERANDS];
        find_buffers(&unplaced, &plan->ops[i], buffers);
        if (!is_transfer(&plan->ops[i])) {
            TRY(backend->ops->prepare(backend, &plan->ops[i], buffers));
        }
    }
    return OK;
}

status step_open(struct step **opened, const struct plan *plan, struct backend *backend, struct comm *comm)
{
    TRY(check_ops(plan, backend));
    int64_t scratch_bytes = find_scratch_bytes(plan, backend);
    TRY(budget_check(plan, backend, comm, scratch_bytes));

    struct step *step = memory_allocate(sizeof(*step));
    *opened           = step;
    *step             = (struct step){
                    .plan    = plan,
                    .backend = backend,
                    .comm    = comm,
                    .lanes   = {
                          .backend = backend, .streams = backend->ops->streams, .comm_ops = comm->ops, .rank = comm->place.rank}};
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        step->storage_bytes[storage] = plan->storage_bytes[storage];
        if (plan->storage_bytes[storage] > 0) {
            step->storage[storage] = backend_allocate(backend, plan->storage_bytes[storage]);
        }
    }
    backend_reserve_scratch(backend, scratch_bytes);
    open_groups(step);
    fill_queues(step);
    if (step->lanes.streams != NULL) {
        open_device(step);
    }
    if (!step->is_issued) {
        lanes_open(&step->lanes);
    }
    return OK;
}

static void close_device(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    if (step->is_captured) {
        streams->capture_release(step->backend);
    }
    if (step->is_issued) {
        issue_close(&step->issue);
    } else {
        staging_close(&step->lanes);
    }
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        if (step->works[i].event != NULL) {
            streams->event_close(step->works[i].event);
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
    free(step->queued);
    free(step);
}

static void run_device(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    streams->record(step->backend, LANE_COMPUTE, step->begin);
    if (step->is_captured && step->lanes.trace == NULL) {
        streams->capture_launch(step->backend, LANE_COMPUTE);
    } else if (step->is_issued) {
        issue_run(&step->issue);
    } else {
        lanes_run(&step->lanes);
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            streams->synchronize(step->backend, lane);
        }
    }
    streams->record(step->backend, LANE_COMPUTE, step->end);
    streams->synchronize(step->backend, LANE_COMPUTE);
}

void step_run(struct step *step)
{
    struct trace *trace = step->lanes.trace;
    if (trace != NULL) {
        trace_start(trace);
    }
    if (step->lanes.streams != NULL) {
        run_device(step);
    } else {
        lanes_run(&step->lanes);
    }
    if (trace != NULL) {
        trace_read(&step->lanes, step->begin);
    }
}

void step_trace(struct step *step, struct op_time *times)
{
    struct lanes *lanes = &step->lanes;
    if (lanes->trace != NULL) {
        trace_close(lanes, lanes->trace);
    }
    lanes->trace = times != NULL ? trace_open(lanes, step->works, step->plan->op_count, times) : NULL;
}

bool step_can_capture(const struct step *step)
{
    return step->is_issued;
}

void step_capture(struct step *step)
{
    const struct backend_streams *streams = step->lanes.streams;
    streams->capture_begin(step->backend, LANE_COMPUTE);
    issue_run(&step->issue);
    streams->capture_end(step->backend, LANE_COMPUTE);
    step->is_captured = true;
}

double step_device_seconds(const struct step *step)
{
    return step->lanes.streams != NULL ? step->lanes.streams->seconds_between(step->begin, step->end) : NAN;
}

void step_make_weights(struct step *step)
{
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        const struct work *work = &step->works[i];
        if (!work->op->is_initial) {
            continue;
        }
        if (work->run != NULL) {
            work->run(step->backend, work->op, work->buffers);
        } else {
            work_transfer(&step->lanes, work);
        }
        if (step->lanes.streams != NULL) {
            step->lanes.streams->synchronize(step->backend, work->op->lane);
        }
    }
}

void step_gather_weights(struct step *step)
{
    struct lanes       *lanes = &step->lanes;
    const struct queue *queue = &lanes->queues[LANE_PARAMETER_GATHER];
    for (int32_t i = 0; i < queue->count; i++) {
        work_transfer(lanes, queue->works[i]);
    }
    if (lanes->streams != NULL) {
        lanes->streams->synchronize(step->backend, LANE_PARAMETER_GATHER);
    }
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
