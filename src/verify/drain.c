// SPDX-License-Identifier: MIT
// Detects deadlocks by running the communication ops of one rank per class of ranks with equal communication. Streams
// are queues; the run ends when all are empty or none can continue. An op that can run now can also run later, so the
// result does not depend on timing, and one execution order is enough.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

struct class_state {
    int32_t head[STREAM_COUNT];           // per stream: current event (communication op); EVENT_END: done
    bool    has_arrived[STREAM_COUNT];    // per stream: its current op waits for other participants
    bool    is_listed;                    // true: the class is in the work list
};

struct drain {
    struct verification *job;
    struct match        *match;
    struct class_state  *states;    // [class]
    int32_t             *list;      // work list of rank classes that may progress
    int32_t              listed;
};

struct stream_head {
    int32_t class, stream;
};

static const struct event *head_of(const struct drain *drain, struct stream_head stream_head)
{
    return &drain->job->classes[stream_head.class]->events[drain->states[stream_head.class].head[stream_head.stream]];
}

static void list_class(struct drain *drain, int32_t class)
{
    if (!drain->states[class].is_listed) {
        drain->states[class].is_listed = true;
        drain->list[drain->listed++]   = class;
    }
}

static void step_stream(struct drain *drain, struct stream_head stream_head)
{
    struct class_state *state              = &drain->states[stream_head.class];
    state->head[stream_head.stream]        = head_of(drain, stream_head)->next;
    state->has_arrived[stream_head.stream] = false;
    list_class(drain, stream_head.class);
}

// Returns the unfinished dependency of an event (communication op); -1: none.
static int32_t held_by(const struct drain *drain, int32_t class, const struct event *event)
{
    for (int w = 0; w < event->wait_count; w++) {
        const struct event *waited = &drain->job->classes[class]->events[event->wait[w]];
        if (drain->states[class].head[waited->stream] <= event->wait[w]) {
            return event->wait[w];
        }
    }
    return -1;
}

// Returns the stream on which a participant makes its next call.
static struct stream_head due(const struct drain *drain, const struct rendezvous *rendezvous,
                              const struct participant *participant)
{
    const struct call *call = &drain->match->calls[participant->first_call + rendezvous->done];
    return (struct stream_head){participant->class, drain->job->classes[call->class]->events[call->event].stream};
}

static void arrive(struct drain *drain, struct stream_head stream_head)
{
    const struct event *event        = head_of(drain, stream_head);
    struct rendezvous  *rendezvous   = &drain->match->rendezvous_list[event->rendezvous];
    struct participant *participants = &drain->match->participants[rendezvous->first_participant];
    // On a link, participant 0 sends and 1 receives. Both can be the same class of ranks, so the op kind decides.
    int32_t own = event_is_link(event) ? event->kind == OP_RECEIVE : 0;
    while (participants[own].class != stream_head.class) {
        own++;
    }
    participants[own].has_arrived                                    = true;
    drain->states[stream_head.class].has_arrived[stream_head.stream] = true;
    if (++rendezvous->arrived < rendezvous->participants) {
        return;
    }
    for (int32_t i = 0; i < rendezvous->participants; i++) {
        participants[i].has_arrived = false;
        step_stream(drain, due(drain, rendezvous, &participants[i]));
    }
    rendezvous->arrived = 0;
    rendezvous->done++;
}

static void run_class(struct drain *drain, int32_t class)
{
    struct class_state *state = &drain->states[class];
    state->is_listed          = false;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        struct stream_head stream_head = {class, stream};
        while (state->head[stream] != EVENT_END && !state->has_arrived[stream]) {
            const struct event *event = head_of(drain, stream_head);
            if (held_by(drain, class, event) >= 0) {
                break;
            }
            arrive(drain, stream_head);
        }
    }
}

// Returns the stream that this stream waits for: another stream of the rank, or the stream of a participant that has
// not arrived at the collective, or at the other side of the send or receive. Sets rank to the rank of that stream.
static struct stream_head follow(const struct drain *drain, struct stream_head stream_head, int64_t *rank)
{
    const struct event    *event    = head_of(drain, stream_head);
    const struct skeleton *skeleton = drain->job->classes[stream_head.class];
    int32_t                wait     = held_by(drain, stream_head.class, event);
    if (wait >= 0) {
        return (struct stream_head){stream_head.class, skeleton->events[wait].stream};
    }
    const struct rendezvous  *rendezvous  = &drain->match->rendezvous_list[event->rendezvous];
    const struct participant *participant = &drain->match->participants[rendezvous->first_participant];
    while (participant->has_arrived) {
        participant++;
    }
    const struct skeleton_group *group = &skeleton->groups[event->group];
    int64_t                      other = event_is_link(event) ? group->ranks[event->peer] : group->ranks[0];
    for (int64_t i = 1; job_class(drain->job, other) != drain->job->classes[participant->class]->rank; i++) {
        other = group->ranks[i];
    }
    *rank = job_related(drain->job, *rank, job_relation(drain->job, skeleton->rank, other));
    return due(drain, rendezvous, participant);
}

// Reports a deadlock. Every blocked stream waits for another blocked stream, so following the waits leads into a cycle.
static void report_deadlock(struct drain *drain, struct stream_head stream_head, int64_t rank)
{
    struct text_buffer circle = {0};
    char               text[JOB_NAME_BYTES];
    int64_t            steps = (int64_t)drain->job->class_count * STREAM_COUNT;
    for (int64_t i = 0; i < steps; i++) {
        stream_head = follow(drain, stream_head, &rank);
    }
    const struct stream_head first = stream_head;
    do {
        text_append(&circle, "%s%s on stream %s", circle.length == 0 ? "" : " waits for ",
                    job_name(drain->job, rank, head_of(drain, stream_head)->op, text),
                    op_stream_name((enum stream)stream_head.stream));
        stream_head = follow(drain, stream_head, &rank);
    } while (stream_head.class != first.class || stream_head.stream != first.stream);
    job_report(drain->job, rank, -1, "the job deadlocks: %s waits for the %s stream of rank %lld", circle.text,
               op_stream_name((enum stream)first.stream), (long long)rank);
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
    for (int32_t i = 0; i < job->class_count * STREAM_COUNT && has_ended; i++) {
        struct stream_head stream_head = {i / STREAM_COUNT, i % STREAM_COUNT};
        if (drain.states[stream_head.class].head[stream_head.stream] != EVENT_END) {
            report_deadlock(&drain, stream_head, job->classes[stream_head.class]->rank);
            has_ended = false;
        }
    }
    free(drain.states);
    free(drain.list);
}
