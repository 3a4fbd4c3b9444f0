// SPDX-License-Identifier: MIT
// Runs one op: directly if the backend computes in run(), or enqueued between its events.
#include "gswbench/clock.h"
#include "check.h"
#include "pauses.h"
#include "tallies.h"
#include "trace.h"

// Relaxed: readers need no ordering between streams.
static void show(atomic_int *place, int value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

void entry_transfer(struct lanes *lanes, const struct queue_entry *entry)
{
    const struct buffer *in = &entry->buffers[TRANSFER_IN], *out = &entry->buffers[TRANSFER_OUT];
    atomic_int          *moves = &lanes->progress->moves[entry->op->lane];
    show(moves, 1);
    if (lanes->streams != NULL && !lanes->comm_ops->is_enqueued) {
        staging_run(lanes, entry);
    } else {
        lanes->comm_ops->run(entry->group, entry->op, in->data, out->data,
                             out->data != NULL ? out->format : in->format);
    }
    show(moves, 0);
}

static void execute_planned(struct lanes *lanes, const struct queue_entry *entry)
{
    if (entry->run != NULL) {
        entry->run(lanes->backend, entry->op, entry->buffers);
    } else if (entry->prepared != NULL) {
        entry->prepared->run(lanes->backend, entry->prepared, entry->op, entry->buffers);
    } else {
        entry_transfer(lanes, entry);
    }
}

static bool is_weight_gradient(const struct op *op)
{
    return (op->kind == OP_GEMM && op->shape.gemm.k == 0) || op->kind == OP_COLUMN_SUM;
}

// A collective with zero rows still runs, because other members may have rows.
static void execute_tallied(struct lanes *lanes, const struct queue_entry *entry)
{
    struct tallied now;
    if (entry->op->kind == OP_READ_TALLIES && lanes->backend->ops->computes) {
        tallies_read(lanes, entry);
    } else if (!tallies_apply(lanes, entry, &now)) {
        execute_planned(lanes, entry);
    } else if (now.rows > 0 || entry->group != NULL) {
        execute_planned(lanes, &now.entry);
    } else if (is_weight_gradient(&now.op) && !now.op.accumulates) {
        tallies_clear(lanes, &now);
    }
}

static void execute(struct lanes *lanes, const struct queue_entry *entry)
{
    course_add(&lanes->queues[entry->op->lane].course, entry);
    if (entry->tally == NULL) {
        execute_planned(lanes, entry);
    } else {
        execute_tallied(lanes, entry);
    }
}

static void execute_faulty(struct lanes *lanes, const struct queue_entry *entry)
{
    if (fault_before(lanes, entry)) {
        double began = clock_seconds();
        execute(lanes, entry);
        fault_after(lanes, entry, began);
    }
}

static void hold_stream(struct lanes *lanes, const struct queue_entry *entry)
{
    if (lanes->pauses != NULL) {
        pauses_begin(lanes, entry);
    }
    for (int32_t i = 0; i < entry->wait_count; i++) {
        lanes->streams->wait(lanes->backend, entry->op->lane, entry->waits[i].event);
    }
    if (lanes->pauses != NULL) {
        pauses_end(lanes, entry);
    }
}

static void wait_for_others(struct lanes *lanes, const struct queue_entry *entry)
{
    if (entry->wait_count > 0 && lanes->streams != NULL) {
        hold_stream(lanes, entry);
    }
}

static void tell_others(struct lanes *lanes, const struct queue_entry *entry)
{
    if (entry->event != NULL) {
        lanes->streams->record(lanes->backend, entry->op->lane, entry->event);
    }
}

// Callbacks include the op's waits; traced times do not.
static void run_observed(struct lanes *lanes, const struct queue_entry *entry)
{
    const struct step_watch *watch = lanes->watch;
    if (watch != NULL) {
        watch->begin(watch->state, entry->op);
    }
    wait_for_others(lanes, entry);
    if (lanes->trace != NULL) {
        trace_begin(lanes, entry);
    }
    if (lanes->left_out != NULL && lanes->left_out[entry->number - 1]) {
        // others wait for its event all the same
    } else if (lanes->exam != NULL) {
        exam_run(lanes, entry);
    } else if (lanes->fault == NULL) {
        execute(lanes, entry);
    } else {
        execute_faulty(lanes, entry);
    }
    if (lanes->trace != NULL) {
        trace_end(lanes, entry);
    }
    tell_others(lanes, entry);
    if (watch != NULL) {
        watch->end(watch->state, entry->op);
    }
    if (lanes->check != NULL && lanes->exam == NULL) {    // exam_run skips compute ops
        check_op(lanes, entry);
    }
}

void entry_run(struct lanes *lanes, const struct queue_entry *entry)
{
    show(entry->shown, entry->number);
    if (lanes->is_plain) {
        wait_for_others(lanes, entry);
        execute(lanes, entry);
        tell_others(lanes, entry);
    } else {
        run_observed(lanes, entry);
    }
}
