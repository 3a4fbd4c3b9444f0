// SPDX-License-Identifier: MIT
// Opens a step: allocates memory (storage.c), opens communicators (groups.c), resolves each op's operands and
// dependencies, and runs each distinct compute op once.
#include "internal.h"

#include <string.h>

#include "gswbench/fatal.h"

static bool is_communication(const struct op *op)
{
    return op_is_communication((enum op_kind)op->kind);
}

// Compute ops must be on the compute stream, because they share the backend's scratch memory.
static status check_ops(const struct plan *plan, const struct backend *backend)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        char             name[160];
        if (is_communication(op)) {
            continue;
        }
        if (backend->ops->run[op->kind] == NULL) {
            return fail("[run] backend = %s: does not execute %s", backend->ops->name,
                        plan_op_name(plan, i, name, sizeof(name)));
        }
        if (op->stream != STREAM_COMPUTE) {
            FATAL(EXIT_INTERNAL, "%s computes on the %s stream", plan_op_name(plan, i, name, sizeof(name)),
                  op_stream_name((enum stream)op->stream));
        }
    }
    return OK;
}

static int64_t find_scratch_bytes(const struct plan *plan, struct backend *backend)
{
    int64_t maximum = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (!is_communication(&plan->ops[i])) {
            const struct row_count *row_count = plan_op_row_count(plan, &plan->ops[i]);
            struct op op    = plan_op_of_rows(plan, &plan->ops[i], row_count != NULL ? row_count->maximum : 0);
            int64_t   bytes = backend->ops->scratch_bytes(backend, &op);
            maximum         = bytes > maximum ? bytes : maximum;
        }
    }
    return maximum;
}

// Finds the buffers of an op's operands. Absent operands have zeroed buffers.
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

// Sets the algorithm that step_prepare chose for this op with buffers of this alignment. If the backend has no choice
// of algorithms for the op, sets the function of the op's kind.
static void take_prepared(const struct step *step, struct queued_op *queued)
{
    struct buffer buffers[OP_OPERANDS];
    memcpy(buffers, queued->buffers, sizeof(buffers));
    row_counts_align(step->plan, queued->op, buffers);
    status prepared = backend_prepare(step->backend, queued->op, buffers, &queued->prepared);
    if (failed(&prepared)) {
        FATAL(EXIT_INTERNAL, "%s: %s", queued->op->tag.role, prepared.text);
    }
    queued->run = queued->prepared == NULL ? step->backend->ops->run[queued->op->kind] : NULL;
}

static void fill_queued_op(const struct step *step, struct queued_op *queued, const struct op *op,
                           const int32_t *positions)
{
    queued->op        = op;
    queued->row_count = row_counts_of(step->plan, op);
    find_buffers(step, op, queued->buffers);
    if (is_communication(op)) {
        queued->group = step->groups[op->stream * step->plan->group_count + op->shape.communication.group];
    } else {
        take_prepared(step, queued);
    }
    queued->wait_count = op->wait_count;
    for (int i = 0; i < op->wait_count; i++) {
        struct queued_op *awaited = &step->ops[op->wait[i]];
        if (!awaited->is_awaited && step->streams.device_streams != NULL) {
            awaited->event = step->streams.device_streams->event_open(step->backend, EVENT_UNTIMED);
        }
        awaited->is_awaited = true;
        queued->waits[i] =
            (struct wait){.stream = awaited->op->stream, .count = positions[op->wait[i]] + 1, .event = awaited->event};
    }
}

// Fills the queue of every stream. positions[i] is the index of op i in the queue of its stream.
static void fill_queues(struct step *step)
{
    const struct plan *plan      = step->plan;
    struct queue      *queues    = step->streams.queues;
    int32_t           *positions = memory_allocate((size_t)plan->op_count * sizeof(*positions));    // [op]
    step->ops                    = memory_allocate((size_t)plan->op_count * sizeof(*step->ops));
    step->by_stream              = memory_allocate((size_t)plan->op_count * sizeof(struct queued_op *));
    for (int32_t i = 0; i < plan->op_count; i++) {
        positions[i] = queues[plan->ops[i].stream].count++;
    }
    struct queued_op **next = step->by_stream;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        queues[stream].ops = next;
        next += queues[stream].count;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        queues[plan->ops[i].stream].ops[positions[i]] = &step->ops[i];
        fill_queued_op(step, &step->ops[i], &plan->ops[i], positions);
        step->ops[i].number = i + 1;
    }
    step_set_progress(step, NULL);
    free(positions);
}

static bool has_communications(const struct plan *plan)
{
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (is_communication(&plan->ops[i])) {
            return true;
        }
    }
    return false;
}

static void open_device(struct step *step)
{
    const struct backend_streams *device_streams = step->streams.device_streams;
    step->begin                                  = device_streams->event_open(step->backend, EVENT_TIMED);
    step->end                                    = device_streams->event_open(step->backend, EVENT_TIMED);
    step->is_issued                              = step->comm->ops->is_enqueued || !has_communications(step->plan);
    if (step->is_issued) {
        issue_open(step);
    } else {
        staging_open(&step->streams);
    }
}

status step_visit_ops(const struct plan *plan, step_visit *visit, void *context)
{
    struct step unplaced = {.plan = plan};    // has no memory, only addresses with the alignment of real storages
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        unplaced.storage[storage] = (void *)(uintptr_t)PLAN_ALIGNMENT;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct buffer buffers[OP_OPERANDS];
        find_buffers(&unplaced, &plan->ops[i], buffers);
        row_counts_align(plan, &plan->ops[i], buffers);
        if (!is_communication(&plan->ops[i])) {
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

// Returns whether two ops use the same kernels: compares everything that selects a kernel.
static bool use_same_kernels(const struct queued_op *one, const struct queued_op *other)
{
    const struct op *a = one->op, *b = other->op;
    bool same = a->kind == b->kind && one->prepared == other->prepared && a->accumulates == b->accumulates &&
                a->sums_fast == b->sums_fast && a->fused_scaling == b->fused_scaling &&
                a->operand_count == b->operand_count && memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0;
    for (int slot = 0; slot < a->operand_count && same; slot++) {
        same = (a->operand[slot] < 0) == (b->operand[slot] < 0) &&
               one->buffers[slot].format == other->buffers[slot].format;
    }
    return same;
}

// Returns whether the op is a compute op with other kernels than the ops that have run. run: [count], indices of those
// ops.
static bool is_new(const struct step *step, const struct queued_op *queued, const int32_t *run, int32_t count)
{
    bool is_distinct = queued->group == NULL;
    for (int32_t i = 0; i < count && is_distinct; i++) {
        is_distinct = !use_same_kernels(queued, &step->ops[run[i]]);
    }
    return is_distinct;
}

// Fills integer operands for the warm-up, since no op has written them yet: indices with row 0 or none (-1), and counts
// with 0. Plan verification ensures that every integer operand declares its content.
static void fill_indices(const struct step *step, const struct queued_op *queued)
{
    for (int slot = 0; slot < queued->op->operand_count; slot++) {
        const struct buffer *buffer  = &queued->buffers[slot];
        enum op_content      content = op_operand_content(queued->op, slot);
        if (buffer->data != NULL && content != OP_HOLDS_VALUES) {
            int64_t bytes  = format_bytes(buffer->format, buffer->elements);
            void   *filled = memory_allocate((size_t)bytes);
            memset(filled, content == OP_HOLDS_PLACES ? 0xff : 0, (size_t)bytes);    // -1: no row
            step->backend->ops->upload(step->backend, buffer->data, filled, bytes);
            free(filled);
        }
    }
}

// Runs each distinct compute op once, alone, before the first step.
//
// CUDA loads a kernel at its first launch, which may wait for running kernels. In a step, the running kernel could be a
// collective that waits for another rank: a deadlock. CUDA_MODULE_LOADING=EAGER would also load thousands of library
// kernels, which take memory. The warm-up always runs, whether or not results are validated. Operands hold zeros, or
// the output of an earlier op in the same memory; only indices and counts are filled first.
static void warm_up(struct step *step)
{
    int32_t *run = memory_allocate((size_t)step->plan->op_count * sizeof(*run)), count = 0;
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        const struct queued_op *queued = &step->ops[i];
        if (is_new(step, queued, run, count)) {
            fill_indices(step, queued);
            backend_run(step->backend, queued->prepared, queued->op, queued->buffers);
            step->streams.device_streams->synchronize(step->backend, queued->op->stream);
            run[count++] = i;
        }
    }
    free(run);
    storages_clear(step);
}

status step_open(struct step **opened, const struct plan *plan, struct backend *backend, struct comm *comm)
{
    TRY(check_ops(plan, backend));
    int64_t scratch_bytes = find_scratch_bytes(plan, backend);
    TRY(budget_check(plan, backend, comm, &(struct budget_extra){.scratch = scratch_bytes}));

    struct step *step = memory_allocate(sizeof(*step));
    *step             = (struct step){.plan    = plan,
                                      .backend = backend,
                                      .comm    = comm,
                                      .streams = {.backend        = backend,
                                                  .device_streams = backend->ops->streams,
                                                  .comm_ops       = comm->ops,
                                                  .rank           = comm->topology.rank}};
    groups_open(step);
    // Checks the memory again after the communication library has taken memory for connections.
    const struct budget_extra extra = {.scratch = scratch_bytes, .connections = step->connection_bytes};
    status                    left  = comm->ops->is_enqueued ? budget_check(plan, backend, comm, &extra) : OK;
    if (failed(&left)) {
        groups_close(step);
        free(step);
        return left;
    }
    *opened = step;
    storages_open(step);
    groups_share(step);
    backend_reserve_scratch(backend, scratch_bytes);
    step->streams.row_counts = row_counts_open(plan, backend);
    fill_queues(step);
    if (step->streams.device_streams != NULL) {
        open_device(step);
    }
    if (backend->ops->is_device) {
        warm_up(step);
    }
    if (!step->is_issued) {
        streams_open(&step->streams);
    }
    return OK;
}

static void close_device(struct step *step)
{
    const struct backend_streams *device_streams = step->streams.device_streams;
    step_forget(step);
    if (step->streams.stalls != NULL) {
        stalls_close(&step->streams, step->streams.stalls);
    }
    if (step->is_issued) {
        issue_close(step);
    } else {
        staging_close(&step->streams);
    }
    for (int32_t i = 0; i < step->plan->op_count; i++) {
        if (step->ops[i].event != NULL) {
            device_streams->event_close(step->ops[i].event);
        }
    }
    device_streams->event_close(step->begin);
    device_streams->event_close(step->end);
}

void step_close(struct step *step)
{
    step_trace(step, NULL);
    if (!step->is_issued) {
        streams_close(&step->streams);
    }
    if (step->streams.device_streams != NULL) {
        close_device(step);
    }
    groups_close(step);
    storages_close(step);
    row_counts_close(step->streams.row_counts);
    free(step->check);
    free(step->ops);
    free(step->by_stream);
    free(step);
}
