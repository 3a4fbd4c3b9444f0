// SPDX-License-Identifier: MIT
// Runs one op. On a host backend the op runs directly. On a device it is enqueued: first waits for the events of its
// dependencies, then the op, then the record of its own event. Calls the hooks of observers (internal.h) around each
// op. Fingerprints of the executed ops detect an op that is skipped, repeated or out of order.
#include "internal.h"

// Publishes progress for the watchdog. The store is relaxed, because it needs no ordering between streams.
static void show(atomic_int *place, int value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

void queued_op_communication(struct streams *streams, const struct queued_op *queued)
{
    const struct buffer *in = &queued->buffers[COMMUNICATION_IN], *out = &queued->buffers[COMMUNICATION_OUT];
    atomic_int          *moves = &streams->progress->moves[queued->op->stream];
    show(moves, 1);
    if (streams->device_streams != NULL && !streams->comm_ops->is_enqueued) {
        staging_run(streams, queued);
    } else {
        streams->comm_ops->run(queued->group, queued->op, in->data, out->data,
                               out->data != NULL ? out->format : in->format);
    }
    show(moves, 0);
}

static void execute_planned(struct streams *streams, const struct queued_op *queued)
{
    if (queued->run != NULL) {
        queued->run(streams->backend, queued->op, queued->buffers);
    } else if (queued->prepared != NULL) {
        queued->prepared->run(streams->backend, queued->prepared, queued->op, queued->buffers);
    } else {
        queued_op_communication(streams, queued);
    }
}

static bool is_weight_gradient(const struct op *op)
{
    return (op->kind == OP_GEMM && op->shape.gemm.k == 0) || op->kind == OP_COLUMN_SUM;    // both sum over rows
}

// Runs an op with the row count that the step has read. A collective without rows on this rank still runs, because
// other members may have rows.
static void execute_known_rows(struct streams *streams, const struct queued_op *queued)
{
    struct known_rows now;
    if (queued->op->kind == OP_READ_TOKEN_COUNTS && streams->backend->ops->computes) {
        row_counts_read(streams, queued);
    } else if (!row_counts_apply(streams, queued, &now)) {
        execute_planned(streams, queued);
    } else if (now.rows > 0 || queued->group != NULL) {
        execute_planned(streams, &now.queued);
    } else if (is_weight_gradient(&now.op) && !now.op.accumulates) {
        row_counts_clear(streams, &now);
    }
}

static void fingerprint_add(struct fingerprint *fingerprint, const struct queued_op *queued)
{
    const uint64_t prime = 0x100000001b3;
    fingerprint->count++;
    fingerprint->print = (fingerprint->print ^ (uint64_t)queued->number) * prime;
}

static void execute(struct streams *streams, const struct queued_op *queued)
{
    fingerprint_add(&streams->queues[queued->op->stream].fingerprint, queued);
    if (queued->row_count == NULL) {
        execute_planned(streams, queued);
    } else {
        execute_known_rows(streams, queued);
    }
}

static void wait_for_others(struct streams *streams, const struct queued_op *queued)
{
    if (queued->wait_count == 0 || streams->device_streams == NULL) {
        return;
    }
    stalls_begin(streams, queued);
    for (int32_t i = 0; i < queued->wait_count; i++) {
        streams->device_streams->wait(streams->backend, queued->op->stream, queued->waits[i].event);
    }
    stalls_end(streams, queued);
}

static void tell_others(struct streams *streams, const struct queued_op *queued)
{
    if (queued->event != NULL) {
        streams->device_streams->record(streams->backend, queued->op->stream, queued->event);
    }
}

// Runs an op with the observers' hooks. Records the op's event even if a hook skips the op, because other streams wait
// for the event.
static void run_observed(struct streams *streams, const struct queued_op *queued)
{
    const struct op_observer *observers = streams->observers;
    int                       entered   = 0;
    bool                      runs      = true;
    for (int i = 0; i < OBSERVER_COUNT; i++) {
        if (observers[i].hooks != NULL && observers[i].hooks->before_waits != NULL) {
            observers[i].hooks->before_waits(streams, queued, observers[i].state);
        }
    }
    wait_for_others(streams, queued);
    for (; entered < OBSERVER_COUNT && runs; entered += runs) {
        const struct op_observer *observer = &observers[entered];
        runs                               = observer->hooks == NULL || observer->hooks->before == NULL ||
               observer->hooks->before(streams, queued, observer->state);
    }
    if (runs) {
        execute(streams, queued);
    }
    while (entered-- > 0) {
        if (observers[entered].hooks != NULL && observers[entered].hooks->after != NULL) {
            observers[entered].hooks->after(streams, queued, observers[entered].state);
        }
    }
    tell_others(streams, queued);
    for (int i = OBSERVER_COUNT - 1; i >= 0; i--) {
        if (observers[i].hooks != NULL && observers[i].hooks->after_event != NULL) {
            observers[i].hooks->after_event(streams, queued, observers[i].state);
        }
    }
}

void queued_op_run(struct streams *streams, const struct queued_op *queued)
{
    show(queued->shown, queued->number);
    if (streams->observer_count == 0) {
        wait_for_others(streams, queued);
        execute(streams, queued);
        tell_others(streams, queued);
    } else {
        run_observed(streams, queued);
    }
}

void queued_op_run_alone(struct step *step, const struct queued_op *queued)
{
    struct streams   *streams   = &step->streams;
    struct injection *injection = &step->injection;
    if (queued->group != NULL) {
        queued_op_communication(streams, queued);
        streams_synchronize(streams, queued->op->stream);
        return;
    }
    show(queued->shown, queued->number);
    if (injection->fault == NULL || fault_before(streams, queued, injection)) {
        backend_run(step->backend, queued->prepared, queued->op, queued->buffers);
        streams_synchronize(streams, queued->op->stream);
        if (injection->fault != NULL) {
            fault_after(streams, queued, injection);
        }
    }
    show(queued->shown, 0);
}

void observers_set(struct streams *streams, enum observer_place place, const struct op_hooks *hooks, void *state)
{
    streams->observer_count += (hooks != NULL) - (streams->observers[place].hooks != NULL);
    streams->observers[place] = (struct op_observer){hooks, state};
}

bool observers_allow_replay(const struct streams *streams)
{
    bool allow = true;
    for (int place = 0; place < OBSERVER_COUNT; place++) {
        allow &= streams->observers[place].hooks == NULL || streams->observers[place].hooks->allows_replay;
    }
    return allow;
}

void fingerprints_begin(struct streams *streams, bool is_replay)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        streams->queues[stream].fingerprint = is_replay ? streams->queues[stream].captured : (struct fingerprint){0};
    }
}

bool step_followed_plan(const struct step *step, struct step_departure *departure)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        const struct queue *queue   = &step->streams.queues[stream];
        struct fingerprint  planned = {0};
        for (int32_t i = 0; i < queue->count; i++) {
            fingerprint_add(&planned, queue->ops[i]);
        }
        if (queue->fingerprint.count != planned.count || queue->fingerprint.print != planned.print) {
            *departure = (struct step_departure){stream, queue->fingerprint.count, planned.count};
            return false;
        }
    }
    return true;
}
