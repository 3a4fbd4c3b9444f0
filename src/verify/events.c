// SPDX-License-Identifier: MIT
// Reduces a rank's plan to its skeleton, the communication ops and their order (internal.h). Checks each of these ops
// against its group and operands.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/op_table.h"
#include "internal.h"

// Returns whether a tensor has room for the maximum row count. findings.c checks tensors whose start depends on row
// counts.
static bool has_room(const struct plan *plan, const struct op *op, int slot)
{
    const struct tensor    *tensor    = &plan->tensors[op->operand[slot]];
    const struct row_count *row_count = tensor->row_count > 0 ? &plan->row_counts[tensor->row_count - 1] : NULL;
    return row_count == NULL || tensor->is_packed ||
           row_count->maximum * plan_row_elements(plan, op->operand[slot]) == tensor->elements;
}

static void check_operands(struct verification *job, const struct plan *plan, int32_t index)
{
    const struct op         *op    = &plan->ops[index];
    const struct plan_group *group = &plan->groups[op->shape.communication.group];
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] < 0) {
            continue;
        }
        const struct tensor *tensor = &plan->tensors[op->operand[slot]];
        if (plan_operand_elements(plan, op, slot) != op_communication_elements(op, slot, group->size) ||
            !has_room(plan, op, slot)) {
            job_report(job, plan->rank, index, "%lld elements over %lld ranks do not fit its operand of %lld",
                       (long long)op->shape.communication.elements, (long long)group->size,
                       (long long)tensor->elements);
        }
        int32_t first = op->operand[op->operand[COMMUNICATION_IN] >= 0 ? COMMUNICATION_IN : COMMUNICATION_OUT];
        if (tensor->format != plan->tensors[first].format) {
            job_report(job, plan->rank, index, "its operands are %s and %s", format_name(plan->tensors[first].format),
                       format_name(tensor->format));
        }
    }
}

static bool is_sound(const struct plan *plan, const struct plan_group *group)
{
    for (int64_t i = 0; i < group->size; i++) {
        if (group->ranks[i] < (i == 0 ? 0 : group->ranks[i - 1] + 1) || group->ranks[i] >= plan->mesh.world) {
            return false;
        }
    }
    return group->index >= 0 && group->index < group->size && group->ranks[group->index] == plan->rank;
}

// Checks a communication op. Returns false if its errors make further checks impossible.
static bool check_communication(struct verification *job, const struct plan *plan, int32_t index)
{
    const struct op                  *op    = &plan->ops[index];
    const struct communication_shape *shape = &op->shape.communication;
    if (shape->group < 0 || shape->group >= plan->group_count) {
        job_report(job, plan->rank, index, "has no group");
        return false;
    }
    const struct plan_group *group = &plan->groups[shape->group];
    if (!is_sound(plan, group)) {
        job_report(job, plan->rank, index, "its group does not list this rank once, among rising ranks of the job");
        return false;
    }
    bool is_link = op_is_link((enum op_kind)op->kind), has_root = op_table[op->kind].peer == OP_PEER_ROOT;
    if ((is_link || has_root) && (shape->peer < 0 || shape->peer >= group->size)) {
        job_report(job, plan->rank, index, "its peer %d is not in the group of %lld", shape->peer,
                   (long long)group->size);
        return false;
    }
    if (is_link && shape->peer == group->index) {
        job_report(job, plan->rank, index, "its peer is the rank itself");
        return false;
    }
    check_operands(job, plan, index);
    return true;
}

static struct event create_event(const struct plan *plan, int32_t index)
{
    const struct op *op = &plan->ops[index];
    struct event     event;
    memset(&event, 0, sizeof(event));
    int32_t operand = op->operand[op->operand[COMMUNICATION_OUT] >= 0 ? COMMUNICATION_OUT : COMMUNICATION_IN];
    event.op        = index;
    event.next      = EVENT_END;
    event.stream    = op->stream;
    event.kind      = op->kind;
    event.elements  = op->shape.communication.elements;
    event.group     = op->shape.communication.group;
    event.peer      = op->shape.communication.peer;
    event.channel   = op->shape.communication.channel;
    event.format    = (uint8_t)plan->tensors[operand].format;
    return event;
}

static int32_t count_communications(const struct plan *plan)
{
    int32_t count = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        count += op_is_communication((enum op_kind)plan->ops[i].kind);
    }
    return count;
}

// Per stream: the last event (communication op) that has ended; -1: none.
struct ended {
    int32_t event[STREAM_COUNT];
};

static void add_ended(struct ended *ended, const struct ended *more)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        ended->event[stream] = more->event[stream] > ended->event[stream] ? more->event[stream] : ended->event[stream];
    }
}

// Adds dependencies on events that ended before this event starts, unless the previous event on its stream implies
// them.
static void add_waits(struct event *event, const struct ended *begin, const struct ended *before)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (stream != event->stream && begin->event[stream] > before->event[stream]) {
            event->wait[event->wait_count++] = begin->event[stream];
        }
    }
}

// Creates an event per communication op. Compute ops involve no other rank and end once their dependencies have ended,
// so they have no event. If a communication op waits for a compute op, its event depends on the events that the compute
// op waits for.
static void create_events(struct verification *job, struct skeleton *skeleton, const struct plan *plan)
{
    // ended: [op], the events that have ended when the op ends
    struct ended none, *ended = memory_allocate((size_t)plan->op_count * sizeof(*ended));
    struct ended before[STREAM_COUNT];    // [stream]: events that had ended when the stream's latest event started
    int32_t      last[STREAM_COUNT], *end[STREAM_COUNT];    // latest op; where to store the next event's index
    memset(&none, 0xff, sizeof(none));
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        skeleton->first[stream] = EVENT_END;
        end[stream]             = &skeleton->first[stream];
        last[stream]            = -1;
        before[stream]          = none;
    }
    skeleton->flops += plan->owner_flops;
    skeleton->events = arena_allocate(&job->arena, (size_t)count_communications(plan) * sizeof(*skeleton->events));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        ended[i]            = last[op->stream] < 0 ? none : ended[last[op->stream]];
        last[op->stream]    = i;
        skeleton->flops += op_flops(op);
        for (int w = 0; w < op->wait_count; w++) {
            add_ended(&ended[i], &ended[op->wait[w]]);
        }
        if (!op_is_communication((enum op_kind)op->kind)) {
            continue;
        }
        struct event *event = &skeleton->events[skeleton->event_count];
        *event              = create_event(plan, i);
        add_waits(event, &ended[i], &before[op->stream]);
        before[op->stream]         = ended[i];
        ended[i].event[op->stream] = *end[op->stream] = skeleton->event_count++;
        end[op->stream]                               = &event->next;
        if (check_communication(job, plan, i)) {
            int32_t *first_op = &skeleton->groups[event->group].first_op;
            *first_op         = *first_op < 0 ? i : *first_op;
        }
    }
    free(ended);
}

static void create_groups(struct arena *arena, struct skeleton *skeleton, const struct plan *plan)
{
    skeleton->group_count = plan->group_count;
    skeleton->groups      = arena_allocate(arena, (size_t)plan->group_count * sizeof(*skeleton->groups));
    for (int32_t g = 0; g < plan->group_count; g++) {
        const struct plan_group *from  = &plan->groups[g];
        struct skeleton_group   *group = &skeleton->groups[g];
        size_t                   bytes = (size_t)from->size * sizeof(*from->ranks);
        *group         = (struct skeleton_group){.axes = from->axes, .size = from->size, .first_op = -1};
        group->ranks   = memcpy(arena_allocate(arena, bytes), from->ranks, bytes);
        group->classes = arena_allocate(arena, bytes);
        group->members = XXH3_64bits(group->ranks, bytes);
    }
}

struct skeleton *skeleton_create(struct verification *job, const struct plan *plan)
{
    struct skeleton *skeleton = arena_allocate(&job->arena, sizeof(*skeleton));
    skeleton->rank            = plan->rank;
    skeleton->op_count        = plan->op_count;
    create_groups(&job->arena, skeleton, plan);
    create_events(job, skeleton, plan);
    return skeleton;
}

static void label_group(const struct verification *job, struct skeleton_group *group)
{
    group->class_count = 0;
    for (int64_t i = 0; i < group->size; i++) {
        group->classes[i] = job_class(job, group->ranks[i]);
    }
    qsort(group->classes, (size_t)group->size, sizeof(*group->classes), number_compare);
    for (int64_t i = 0; i < group->size; i++) {
        if (group->class_count == 0 || group->classes[group->class_count - 1] != group->classes[i]) {
            group->classes[group->class_count++] = group->classes[i];
        }
    }
    int64_t head[] = {group->axes, group->size};
    group->label   = XXH3_64bits_withSeed(group->classes, (size_t)group->class_count * sizeof(*group->classes),
                                          XXH3_64bits(head, sizeof(head)));
}

uint64_t skeleton_signature(const struct verification *job, struct skeleton *skeleton)
{
    uint32_t made_for = job->distinct_axes | 1u << AXIS_COUNT;
    if (skeleton->signature_axes == made_for) {
        return skeleton->signature;
    }
    XXH64_hash_t hash = (XXH64_hash_t)skeleton->event_count;
    for (int32_t g = 0; g < skeleton->group_count; g++) {
        label_group(job, &skeleton->groups[g]);
        hash = XXH3_64bits_withSeed(&skeleton->groups[g].label, sizeof(uint64_t), hash);
    }
    for (int32_t i = 0; i < skeleton->event_count; i++) {
        struct event event = skeleton->events[i];
        if (event_is_link(&event)) {
            int64_t peer = skeleton->groups[event.group].ranks[event.peer];
            event.peer   = (int32_t)job_relation(job, skeleton->rank, peer);
        }
        event.op         = 0;
        event.rendezvous = 0;
        hash             = XXH3_64bits_withSeed(&event, offsetof(struct event, wait_count) + 1, hash);
    }
    skeleton->signature_axes = made_for;
    skeleton->signature      = hash;
    return hash;
}
