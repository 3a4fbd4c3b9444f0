// SPDX-License-Identifier: MIT
// Deadlock detection: runs the streams of every rank class as queues. An op that can run now can also run later, so the
// result does not depend on timing, and one execution order is enough.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

struct class_state {
    int32_t head[LANE_COUNT];    // current event; EVENT_END: the stream is done
    bool    is_meeting[LANE_COUNT];
    bool    is_listed;
};

struct drain {
    struct verification *job;
    struct match        *match;
    struct class_state  *states;    // [class]
    int32_t             *list;      // work list of classes that may progress
    int32_t              listed;
};

struct front {
    int32_t class, lane;
};

static const struct event *head_of(const struct drain *drain, struct front front)
{
    return &drain->job->classes[front.class]->events[drain->states[front.class].head[front.lane]];
}

static void list_class(struct drain *drain, int32_t class)
{
    if (!drain->states[class].is_listed) {
        drain->states[class].is_listed = true;
        drain->list[drain->listed++]   = class;
    }
}

static void step_lane(struct drain *drain, struct front front)
{
    struct class_state *state     = &drain->states[front.class];
    state->head[front.lane]       = head_of(drain, front)->next;
    state->is_meeting[front.lane] = false;
    list_class(drain, front.class);
}

// The unfinished dependency of an event; -1: none.
static int32_t held_by(const struct drain *drain, int32_t class, const struct event *event)
{
    for (int w = 0; w < event->wait_count; w++) {
        const struct event *waited = &drain->job->classes[class]->events[event->wait[w]];
        if (drain->states[class].head[waited->lane] <= event->wait[w]) {
            return event->wait[w];
        }
    }
    return -1;
}

// The stream on which a participant makes its next call.
static struct front due(const struct drain *drain, const struct meeting *meeting, const struct party *party)
{
    const struct call *call = &drain->match->calls[party->first_call + meeting->done];
    return (struct front){party->class, drain->job->classes[call->class]->events[call->event].lane};
}

static void arrive(struct drain *drain, struct front front)
{
    const struct event *event   = head_of(drain, front);
    struct meeting     *meeting = &drain->match->meetings[event->meeting];
    struct party       *parties = &drain->match->parties[meeting->first_party];
    // On a link within a class, participant 0 sends and 1 receives.
    int32_t own = event_is_link(event) ? event->kind == OP_RECEIVE : 0;
    while (parties[own].class != front.class) {
        own++;
    }
    parties[own].has_arrived                          = true;
    drain->states[front.class].is_meeting[front.lane] = true;
    if (++meeting->arrived < meeting->parties) {
        return;
    }
    for (int32_t i = 0; i < meeting->parties; i++) {
        parties[i].has_arrived = false;
        step_lane(drain, due(drain, meeting, &parties[i]));
    }
    meeting->arrived = 0;
    meeting->done++;
}

static void run_class(struct drain *drain, int32_t class)
{
    struct class_state *state = &drain->states[class];
    state->is_listed          = false;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct front front = {class, lane};
        while (state->head[lane] != EVENT_END && !state->is_meeting[lane]) {
            const struct event *event = head_of(drain, front);
            if (held_by(drain, class, event) >= 0) {
                break;
            }
            arrive(drain, front);
        }
    }
}

// The stream that the given stream head waits for: another stream of the rank, or a participant that has not arrived.
// rank: updated to the other's rank.
static struct front follow(const struct drain *drain, struct front front, int64_t *rank)
{
    const struct event    *event    = head_of(drain, front);
    const struct skeleton *skeleton = drain->job->classes[front.class];
    int32_t                wait     = held_by(drain, front.class, event);
    if (wait >= 0) {
        return (struct front){front.class, skeleton->events[wait].lane};
    }
    const struct meeting *meeting = &drain->match->meetings[event->meeting];
    const struct party   *party   = &drain->match->parties[meeting->first_party];
    while (party->has_arrived) {
        party++;
    }
    const struct skeleton_group *group = &skeleton->groups[event->group];
    int64_t                      other = event_is_link(event) ? group->ranks[event->peer] : group->ranks[0];
    for (int64_t i = 1; job_class(drain->job, other) != drain->job->classes[party->class]->rank; i++) {
        other = group->ranks[i];
    }
    *rank = job_related(drain->job, *rank, job_relation(drain->job, skeleton->rank, other));
    return due(drain, meeting, party);
}

// Every blocked stream waits for another blocked one, so following them leads into a cycle.
static void report_deadlock(struct drain *drain, struct front front, int64_t rank)
{
    struct text_buffer circle = {0};
    char               text[JOB_NAME_BYTES];
    int64_t            steps = (int64_t)drain->job->class_count * LANE_COUNT;
    for (int64_t i = 0; i < steps; i++) {
        front = follow(drain, front, &rank);
    }
    const struct front first = front;
    do {
        text_append(&circle, "%s%s on lane %s", circle.length == 0 ? "" : " waits for ",
                    job_name(drain->job, rank, head_of(drain, front)->op, text), op_lane_name((enum lane)front.lane));
        front = follow(drain, front, &rank);
    } while (front.class != first.class || front.lane != first.lane);
    job_report(drain->job, "the job deadlocks: %s waits for the %s lane of rank %lld", circle.text,
               op_lane_name((enum lane)first.lane), (long long)rank);
    text_free(&circle);
}

void job_drain(struct verification *job, struct match *match)
{
    struct drain drain = {.job = job, .match = match};
    drain.states       = memory_allocate((size_t)job->class_count * sizeof(*drain.states));
    drain.list         = memory_allocate((size_t)job->class_count * sizeof(*drain.list));
    for (int32_t class = 0; class < job->class_count; class ++) {
        memcpy(drain.states[class].head, job->classes[class]->first, sizeof(drain.states[class].head));
        list_class(&drain, class);
    }
    while (drain.listed > 0) {
        run_class(&drain, drain.list[--drain.listed]);
    }
    bool has_ended = true;
    for (int32_t i = 0; i < job->class_count * LANE_COUNT && has_ended; i++) {
        struct front front = {i / LANE_COUNT, i % LANE_COUNT};
        if (drain.states[front.class].head[front.lane] != EVENT_END) {
            report_deadlock(&drain, front, job->classes[front.class]->rank);
            has_ended = false;
        }
    }
    free(drain.states);
    free(drain.list);
}
