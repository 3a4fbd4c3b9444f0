// SPDX-License-Identifier: MIT
// Runs one op: directly if the backend computes in run(), or enqueued between its events.
// Observers take part in every op. Fingerprints of the executed ops detect an op that is skipped, repeated or out of
// order.
#include "internal.h"

// Relaxed: readers need no ordering between streams.
static void show(atomic_int *place, int value)
{
    atomic_store_explicit(place, value, memory_order_relaxed);
}

void queued_op_transfer(struct lanes *lanes, const struct queued_op *queued)
{
    const struct buffer *in = &queued->buffers[TRANSFER_IN], *out = &queued->buffers[TRANSFER_OUT];
    atomic_int          *moves = &lanes->progress->moves[queued->op->lane];
    show(moves, 1);
    if (lanes->streams != NULL && !lanes->comm_ops->is_enqueued) {
        staging_run(lanes, queued);
    } else {
        lanes->comm_ops->run(queued->group, queued->op, in->data, out->data,
                             out->data != NULL ? out->format : in->format);
    }
    show(moves, 0);
}

static void execute_planned(struct lanes *lanes, const struct queued_op *queued)
{
    if (queued->run != NULL) {
        queued->run(lanes->backend, queued->op, queued->buffers);
    } else if (queued->prepared != NULL) {
        queued->prepared->run(lanes->backend, queued->prepared, queued->op, queued->buffers);
    } else {
        queued_op_transfer(lanes, queued);
    }
}

static bool is_weight_gradient(const struct op *op)
{
    return (op->kind == OP_GEMM && op->shape.gemm.k == 0) || op->kind == OP_COLUMN_SUM;
}

// A collective with zero rows still runs, because other members may have rows.
static void execute_tallied(struct lanes *lanes, const struct queued_op *queued)
{
    struct tallied now;
    if (queued->op->kind == OP_READ_TALLIES && lanes->backend->ops->computes) {
        tallies_read(lanes, queued);
    } else if (!tallies_apply(lanes, queued, &now)) {
        execute_planned(lanes, queued);
    } else if (now.rows > 0 || queued->group != NULL) {
        execute_planned(lanes, &now.queued);
    } else if (is_weight_gradient(&now.op) && !now.op.accumulates) {
        tallies_clear(lanes, &now);
    }
}

static void course_add(struct course *course, const struct queued_op *queued)
{
    const uint64_t prime = 0x100000001b3;
    course->count++;
    course->print = (course->print ^ (uint64_t)queued->number) * prime;
}

static void execute(struct lanes *lanes, const struct queued_op *queued)
{
    course_add(&lanes->queues[queued->op->lane].course, queued);
    if (queued->tally == NULL) {
        execute_planned(lanes, queued);
    } else {
        execute_tallied(lanes, queued);
    }
}

static void hold_stream(struct lanes *lanes, const struct queued_op *queued)
{
    if (lanes->pauses != NULL) {
        pauses_begin(lanes, queued);
    }
    for (int32_t i = 0; i < queued->wait_count; i++) {
        lanes->streams->wait(lanes->backend, queued->op->lane, queued->waits[i].event);
    }
    if (lanes->pauses != NULL) {
        pauses_end(lanes, queued);
    }
}

static void wait_for_others(struct lanes *lanes, const struct queued_op *queued)
{
    if (queued->wait_count > 0 && lanes->streams != NULL) {
        hold_stream(lanes, queued);
    }
}

static void tell_others(struct lanes *lanes, const struct queued_op *queued)
{
    if (queued->event != NULL) {
        lanes->streams->record(lanes->backend, queued->op->lane, queued->event);
    }
}

// Other streams wait for the event of a skipped op all the same.
static void run_observed(struct lanes *lanes, const struct queued_op *queued)
{
    const struct op_observer *observers = lanes->observers;
    int                       count = lanes->observer_count, entered = 0;
    bool                      runs = true;
    for (int i = 0; i < count; i++) {
        if (observers[i].hooks->before_waits != NULL) {
            observers[i].hooks->before_waits(lanes, queued, observers[i].state);
        }
    }
    wait_for_others(lanes, queued);
    for (; entered < count && runs; entered += runs) {
        const struct op_observer *observer = &observers[entered];
        runs = observer->hooks->before == NULL || observer->hooks->before(lanes, queued, observer->state);
    }
    if (runs) {
        execute(lanes, queued);
    }
    while (entered-- > 0) {
        if (observers[entered].hooks->after != NULL) {
            observers[entered].hooks->after(lanes, queued, observers[entered].state);
        }
    }
    tell_others(lanes, queued);
    for (int i = count - 1; i >= 0; i--) {
        if (observers[i].hooks->after_event != NULL) {
            observers[i].hooks->after_event(lanes, queued, observers[i].state);
        }
    }
}

void queued_op_run(struct lanes *lanes, const struct queued_op *queued)
{
    show(queued->shown, queued->number);
    if (lanes->observer_count == 0) {
        wait_for_others(lanes, queued);
        execute(lanes, queued);
        tell_others(lanes, queued);
    } else {
        run_observed(lanes, queued);
    }
}

void queued_op_run_alone(struct step *step, const struct queued_op *queued)
{
    struct lanes     *lanes     = &step->lanes;
    struct injection *injection = &step->injection;
    if (queued->group != NULL) {
        queued_op_transfer(lanes, queued);
        lanes_synchronize(lanes, queued->op->lane);
        return;
    }
    show(queued->shown, queued->number);
    if (injection->fault == NULL || fault_before(lanes, queued, injection)) {
        backend_run(step->backend, queued->prepared, queued->op, queued->buffers);
        lanes_synchronize(lanes, queued->op->lane);
        if (injection->fault != NULL) {
            fault_after(lanes, queued, injection);
        }
    }
    show(queued->shown, 0);
}

void observers_set(struct lanes *lanes, enum observer_place place, const struct op_hooks *hooks, void *state)
{
    struct op_observer *observers = lanes->observers;
    int                 kept      = 0;
    for (int i = 0; i < lanes->observer_count; i++) {
        if (observers[i].place != place) {
            observers[kept++] = observers[i];
        }
    }
    lanes->observer_count = kept;
    if (hooks == NULL) {
        return;
    }
    for (; kept > 0 && observers[kept - 1].place > place; kept--) {
        observers[kept] = observers[kept - 1];
    }
    observers[kept] = (struct op_observer){hooks, state, place};
    lanes->observer_count++;
}

bool observers_allow_replay(const struct lanes *lanes)
{
    bool allow = true;
    for (int i = 0; i < lanes->observer_count; i++) {
        allow &= lanes->observers[i].hooks->allows_replay;
    }
    return allow;
}

void courses_begin(struct lanes *lanes, bool is_replay)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        lanes->queues[lane].course = is_replay ? lanes->queues[lane].captured : (struct course){0};
    }
}

bool step_followed_plan(const struct step *step, struct step_departure *departure)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        const struct queue *queue   = &step->lanes.queues[lane];
        struct course       planned = {0};
        for (int32_t i = 0; i < queue->count; i++) {
            course_add(&planned, queue->ops[i]);
        }
        if (queue->course.count != planned.count || queue->course.print != planned.print) {
            *departure = (struct step_departure){lane, queue->course.count, planned.count};
            return false;
        }
    }
    return true;
}
