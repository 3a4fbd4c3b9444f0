// SPDX-License-Identifier: MIT
// Matches the communication ops of one rank per class of ranks with equal communication. Groups these ops by
// communicator, or by link from a sender to a receiver, and compares the participants' ops in order.
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/op_table.h"
#include "internal.h"

static const struct event *event_of(const struct verification *job, const struct call *call)
{
    return &job->classes[call->class]->events[call->event];
}

// Returns the stream of a send whose receive is on this stream. A send on one pipeline stream is received on the other
// pipeline stream; any other send is received on the same stream.
static int64_t sending_stream(int receiving_stream)
{
    switch (receiving_stream) {
    case STREAM_PIPELINE_RECEIVE:
        return STREAM_PIPELINE_SEND;
    case STREAM_PIPELINE_SEND:
        return STREAM_PIPELINE_RECEIVE;
    default:
        return receiving_stream;
    }
}

// Creates the call of an op. The key of a send or receive has the sender's class and the receiver's position relative
// to the sender (job_relation). So a link of one rank represents this link of every rank of its class.
static struct call create_call(const struct verification *job, int32_t class, int32_t index)
{
    const struct skeleton       *skeleton = job->classes[class];
    const struct event          *event    = &skeleton->events[index];
    const struct skeleton_group *group    = &skeleton->groups[event->group];
    struct call                  call     = {.class = class, .event = index};
    if (!event_is_link(event)) {
        int64_t communicator[] = {(int64_t)group->label, event->stream};
        call.key               = XXH3_64bits(communicator, sizeof(communicator));
        return call;
    }
    call.side      = event->kind == OP_RECEIVE;
    int64_t peer   = group->ranks[event->peer];
    int64_t from   = call.side == 0 ? skeleton->rank : peer;
    int64_t to     = call.side == 0 ? peer : skeleton->rank;
    int64_t stream = call.side == 0 ? event->stream : sending_stream(event->stream);
    int64_t link[] = {(int64_t)group->label, stream, event->channel, job_class(job, from), job_relation(job, from, to)};
    call.key       = XXH3_64bits(link, sizeof(link));
    return call;
}

static int compare_calls(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    if (a->side != b->side) {
        return a->side - b->side;
    }
    return a->class != b->class ? a->class - b->class : a->event - b->event;
}

static void collect_calls(struct match *match, const struct verification *job)
{
    for (int32_t class = 0; class < job->class_count; class ++) {
        match->call_count += job->classes[class]->event_count;
    }
    match->calls      = arena_allocate(&match->arena, (size_t)match->call_count * sizeof(*match->calls));
    match->call_count = 0;
    for (int32_t class = 0; class < job->class_count; class ++) {
        const struct skeleton *skeleton = job->classes[class];
        for (int32_t i = 0; i < skeleton->event_count; i++) {
            match->calls[match->call_count++] = create_call(job, class, i);
        }
    }
    qsort(match->calls, (size_t)match->call_count, sizeof(*match->calls), compare_calls);
}

// Adds the communicator or link of calls [first, end). Each class of ranks is a participant; on a link, each side too.
static struct rendezvous *add_rendezvous(struct match *match, struct verification *job, int32_t first, int32_t end)
{
    struct rendezvous *rendezvous = &match->rendezvous_list[match->rendezvous_count];
    *rendezvous                   = (struct rendezvous){.first_participant = match->participant_count};
    for (int32_t i = first; i < end; i++) {
        const struct call *call = &match->calls[i];
        if (i == first || call->class != call[-1].class || call->side != call[-1].side) {
            match->participants[match->participant_count++] =
                (struct participant){.class = call->class, .first_call = i};
            rendezvous->participants++;
        }
        match->participants[match->participant_count - 1].calls++;
        job->classes[call->class]->events[call->event].rendezvous = match->rendezvous_count;
    }
    match->rendezvous_count++;
    return rendezvous;
}

static bool are_alike(const struct event *a, const struct event *b)
{
    return a->elements == b->elements && a->format == b->format &&
           (event_is_link(a) || (a->kind == b->kind && a->peer == b->peer));
}

enum { DATA_BYTES = 64 };

// Formats the data of an op: "64 elements of f32", and the root or the distance of the peer, if any.
static const char *describe_data(const struct event *event, char text[DATA_BYTES])
{
    int used = snprintf(text, DATA_BYTES, "%lld elements of %s", (long long)event->elements,
                        format_name((enum format)event->format));
    if (op_table[event->kind].peer == OP_PEER_ROOT) {
        snprintf(text + used, DATA_BYTES - (size_t)used, " from member %d", event->peer);
    } else if (op_table[event->kind].peer == OP_PEER_PLACES) {
        snprintf(text + used, DATA_BYTES - (size_t)used, " %d places on", event->peer);
    }
    return text;
}

static void report_unmet(struct verification *job, const struct call *call, int64_t other)
{
    char                data[DATA_BYTES];
    const struct event *event = event_of(job, call);
    job_report(job, job->classes[call->class]->rank, event->op, "%s on stream %s meet nothing on rank %lld",
               describe_data(event, data), op_stream_name((enum stream)event->stream), (long long)other);
}

// Reports the first mismatch between the ops of two participants of a communicator or link.
static void compare_participants(struct match *match, struct verification *job, const struct participant *a,
                                 const struct participant *b)
{
    const struct call *ours = &match->calls[a->first_call], *theirs = &match->calls[b->first_call];
    int32_t            both = a->calls < b->calls ? a->calls : b->calls;
    for (int32_t i = 0; i < both; i++) {
        const struct event *own = event_of(job, &ours[i]), *met = event_of(job, &theirs[i]);
        if (!are_alike(own, met)) {
            char name[JOB_NAME_BYTES], data[DATA_BYTES], met_data[DATA_BYTES];
            job_report(job, job->classes[a->class]->rank, own->op, "%s meet those of %s: %s", describe_data(own, data),
                       job_name(job, job->classes[b->class]->rank, met->op, name), describe_data(met, met_data));
            return;
        }
    }
    if (a->calls > both) {
        report_unmet(job, &ours[both], job->classes[b->class]->rank);
    } else if (b->calls > both) {
        report_unmet(job, &theirs[both], job->classes[a->class]->rank);
    }
}

static void check_link(struct match *match, struct verification *job, const struct rendezvous *rendezvous)
{
    const struct participant *participants = &match->participants[rendezvous->first_participant];
    const struct call        *call         = &match->calls[participants[0].first_call];
    if (rendezvous->participants == 2) {
        compare_participants(match, job, &participants[0], &participants[1]);
        return;
    }
    const struct skeleton *skeleton = job->classes[call->class];
    const struct event    *event    = event_of(job, call);
    report_unmet(job, call, skeleton->groups[event->group].ranks[event->peer]);
}

static void check_communicator(struct match *match, struct verification *job, const struct rendezvous *rendezvous)
{
    const struct participant    *participants = &match->participants[rendezvous->first_participant];
    const struct call           *call         = &match->calls[participants[0].first_call];
    const struct skeleton_group *group        = &job->classes[call->class]->groups[event_of(job, call)->group];
    int32_t                      present      = 0;
    for (int32_t i = 0; i < group->class_count; i++) {
        if (present == rendezvous->participants ||
            job->classes[participants[present].class]->rank != group->classes[i]) {
            report_unmet(job, call, group->classes[i]);
            return;
        }
        compare_participants(match, job, &participants[0], &participants[present]);
        present++;
    }
}

void match_create(struct match *match, struct verification *job)
{
    *match = (struct match){.calls = NULL};
    collect_calls(match, job);
    match->participants    = arena_allocate(&match->arena, (size_t)match->call_count * sizeof(*match->participants));
    match->rendezvous_list = arena_allocate(&match->arena, (size_t)match->call_count * sizeof(*match->rendezvous_list));
    for (int32_t first = 0, end; first < match->call_count; first = end) {
        for (end = first + 1; end < match->call_count && match->calls[end].key == match->calls[first].key;) {
            end++;
        }
        const struct rendezvous *rendezvous = add_rendezvous(match, job, first, end);
        if (event_is_link(event_of(job, &match->calls[first]))) {
            check_link(match, job, rendezvous);
        } else {
            check_communicator(match, job, rendezvous);
        }
    }
    job->proof->communications = match->call_count;
}
