// SPDX-License-Identifier: MIT
// Finds the rank that blocks the others. A rank in a communication op waits for the ranks that have not reached this
// op. If devices execute the communication ops, a rank that has enqueued ops waits for the ranks that have enqueued
// fewer of them. Outside of steps, and before its first op of a step, a rank waits for the ranks that have entered
// fewer watch phases (enum watch_phase). A rank is to blame if others wait for it and it waits for no rank. A process
// that has stopped or ended is always to blame.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

// A rank's watchdog polls every 0.1 s. If its last poll is older than this, its process gets no CPU time (BLAME_DEAF).
static const double DEAF_SECONDS = 3;

static bool is_in_step(const struct slot *slot)    // WATCH_OPENING includes the first step
{
    return slot->phase == WATCH_STEP || slot->phase == WATCH_OPENING;
}

static bool is_communicating(const struct stream_slot *stream)
{
    return stream->axes != 0;
}

// Returns whether the rank executes compute ops only. *is_idle: the rank has not started any op.
static bool is_computing(const struct slot *slot, bool *is_idle)
{
    bool communicates = false;
    *is_idle          = true;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        *is_idle &= slot->streams[stream].op < 0;
        communicates |= is_communicating(&slot->streams[stream]);
    }
    return !*is_idle && !communicates;
}

// Returns whether the rank has enqueued communication ops on its device, for which its host does not wait.
static bool has_enqueued(const struct slot *slot)
{
    bool has_started = false, communicates = false;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        has_started |= stream != STREAM_COMPUTE && slot->streams[stream].op >= 0;
        communicates |= is_communicating(&slot->streams[stream]);
    }
    return slot->sequence != 0 && has_started && !communicates;
}

static int32_t last_started(const struct slot *slot)
{
    int32_t last = -1;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        last = slot->streams[stream].op > last ? slot->streams[stream].op : last;
    }
    return last;
}

// Returns how many ops the other rank is behind this rank, if this rank's device waits for ops that the other rank has
// not enqueued. 0: this rank does not wait for the other rank.
static int32_t find_lag(const struct slot *slot, const struct slot *other)
{
    int32_t lag = last_started(slot) - last_started(other);
    if (!has_enqueued(slot) || other->phases > slot->phases) {
        return 0;
    }
    if (other->phases < slot->phases) {
        return INT32_MAX;
    }
    return is_in_step(other) && other->sequence == slot->sequence && lag > 0 ? lag : 0;
}

// Returns the number of sends to, or receives from, a pipeline stage that the rank has started; 0: not known.
static int32_t count_messages(const struct slot *slot, int32_t peer, bool sends)
{
    int32_t count = 0;
    for (int i = 0; i < NEIGHBOURS; i++) {
        const struct messages *messages = &slot->messages[i];
        count += messages->peer != peer ? 0 : sends ? messages->sent : messages->received;
    }
    return count;
}

// Returns how many messages the other rank is ahead of this rank, which sends to or receives from it on the stream: 2
// if this rank has started 3 sends to the other rank, which has started 5 receives from this rank. Ops of different
// pipeline stages cannot be compared, but the n-th send of one rank belongs to the n-th receive of the other.
static int32_t find_lead(const struct slot *slot, int stream, const struct slot *other)
{
    bool sends = stream == STREAM_PIPELINE_SEND;
    return count_messages(other, slot->rank, !sends) - count_messages(slot, other->rank, sends);
}

// Returns whether the other rank has reached the communication op that this rank executes on the stream. Two
// collectives match if their groups and marks (hashes of kind and size) are equal. They need not be the same op of the
// plan, because communicators match collectives by their order.
static bool has_joined(const struct slot *slot, int stream, const struct slot *other)
{
    if (slot->streams[stream].peer < 0) {
        return other->streams[stream].axes == slot->streams[stream].axes &&
               other->streams[stream].mark == slot->streams[stream].mark;
    }
    for (int i = 0; i < STREAM_COUNT; i++) {    // the peer of a send is in a receive, which has another mark
        const struct stream_slot *theirs = &other->streams[i];
        if (is_communicating(theirs) && theirs->peer == slot->rank && theirs->mark != slot->streams[stream].mark) {
            return find_lead(slot, stream, other) == 0;
        }
    }
    return false;
}

// Returns whether this rank waits for a message that the other rank has skipped: the other rank has started it or a
// later message, but is not in it any more.
static bool has_skipped(const struct slot *slot, const struct slot *other)
{
    bool skipped = false;
    for (int stream = STREAM_PIPELINE_SEND; stream <= STREAM_PIPELINE_RECEIVE; stream++) {
        skipped |= is_communicating(&slot->streams[stream]) && slot->streams[stream].peer == other->rank &&
                   count_messages(slot, other->rank, stream == STREAM_PIPELINE_SEND) > 0 &&
                   find_lead(slot, stream, other) >= 0 && !has_joined(slot, stream, other);
    }
    return skipped;
}

static bool is_member(const struct slot *slot, int stream, const struct slot *other, const struct mesh *mesh,
                      int64_t *group)
{
    const struct stream_slot *at = &slot->streams[stream];
    if (at->peer >= 0) {
        return other->rank == at->peer;
    }
    mesh_group_ranks(mesh, slot->rank, at->axes, group);
    for (int64_t i = 0; i < mesh_group_size(mesh, at->axes); i++) {
        if (group[i] == other->rank) {
            return true;
        }
    }
    return false;
}

// Returns whether the rank of `slot` waits for the rank of `other`. group: scratch memory for the ranks of a group,
// [ranks of the job].
static bool waits_for(const struct slot *slot, const struct slot *other, const struct mesh *mesh, int64_t *group)
{
    if (slot == other) {
        return false;
    }
    if (!is_in_step(slot)) {
        return other->phases < slot->phases;
    }
    if (has_enqueued(slot)) {
        return find_lag(slot, other) > 0;
    }
    bool is_idle, other_is_idle;
    is_computing(slot, &is_idle);
    if (is_idle) {    // waits before its first op, for ranks that enter the phase later or still test ops one by one
        return other->phases < slot->phases ||
               (is_computing(other, &other_is_idle) && !has_enqueued(other) && other->phases == slot->phases);
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (is_communicating(&slot->streams[stream]) && !has_joined(slot, stream, other) &&
            is_member(slot, stream, other, mesh, group)) {
            return true;
        }
    }
    return false;
}

// Returns whether a rank waits for a rank that has not answered the watchdog. Within a step it waits for the other
// ranks of its communication ops. Outside of steps, or if its device executes the communication ops, it may wait for
// any rank. has_answered: [ranks of the job].
static bool waits_for_silent(const struct slot *slot, const bool *has_answered, const struct mesh *mesh, int64_t *group)
{
    bool waits = false, is_open = !is_in_step(slot) || has_enqueued(slot);
    for (int64_t rank = 0; rank < mesh->world && is_open && !waits; rank++) {
        waits = !has_answered[rank];
    }
    for (int stream = 0; stream < STREAM_COUNT && !is_open; stream++) {
        const struct stream_slot *at = &slot->streams[stream];
        if (!is_communicating(at)) {
            continue;
        }
        mesh_group_ranks(mesh, slot->rank, at->axes, group);
        for (int64_t i = 0; i < mesh_group_size(mesh, at->axes); i++) {
            waits |= !has_answered[group[i]] && (at->peer < 0 || at->peer == group[i]);
        }
    }
    return waits;
}

static enum blame blame_process(const struct slot *slot)
{
    switch (slot->state) {
    case '-':    // no such process
    case 'Z':    // zombie
    case 'X':    // dead
        return BLAME_GONE;
    case 'T':    // stopped by a signal
    case 't':    // stopped by a debugger
        return BLAME_STOPPED;
    default:
        return slot->age > DEAF_SECONDS ? BLAME_DEAF : BLAME_NOBODY;
    }
}

struct suspect {
    int64_t waits, waiters;    // number of ranks for which this rank waits, and that wait for it
    int32_t lag;               // the largest find_lag: another rank has started this many more ops
    bool    has_skipped;       // it has skipped a message
};

// Returns whether the first rank is more likely to be the cause than the second. The cause is a rank that others wait
// for and that waits for none. If both do, the rank further behind is the cause: the host of a waiting rank enqueues
// ops until its queue is full, so it is ahead of the rank that hangs. If all ranks wait in a cycle, one of them has
// skipped a communication op, so the most advanced rank is the cause: the one with the highest op index, if ranks have
// the same ops.
static bool is_worse(const struct slot *first, const struct suspect *first_suspect, const struct slot *second,
                     const struct suspect *second_suspect)
{
    if (first_suspect->waiters == 0 || second_suspect->waiters == 0) {
        return first_suspect->waiters > 0;
    }
    if ((first_suspect->waits == 0) != (second_suspect->waits == 0)) {
        return first_suspect->waits == 0;
    }
    if (first_suspect->waits == 0 && first_suspect->lag != second_suspect->lag) {
        return first_suspect->lag > second_suspect->lag;
    }
    if (first_suspect->has_skipped != second_suspect->has_skipped) {
        return first_suspect->has_skipped;
    }
    return first->phases != second->phases ? first->phases > second->phases : slot_op(first) > slot_op(second);
}

enum blame blame_find(const struct slot *slots, int64_t count, const struct mesh *mesh, int64_t *index,
                      int64_t *waiting)
{
    enum blame      found        = BLAME_NOBODY;
    int64_t        *group        = memory_allocate((size_t)mesh->world * sizeof(*group));
    bool           *has_answered = memory_allocate((size_t)mesh->world * sizeof(*has_answered));
    struct suspect *suspects     = memory_allocate((size_t)count * sizeof(*suspects));
    int64_t         worst        = 0;
    *waiting                     = 0;
    for (int64_t i = 0; i < count; i++) {
        has_answered[slots[i].rank] = true;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < count; j++) {
            bool is_awaited = waits_for(&slots[i], &slots[j], mesh, group);
            suspects[i].waits += is_awaited;
            suspects[j].waiters += is_awaited;
            int32_t lag     = find_lag(&slots[i], &slots[j]);
            suspects[j].lag = lag > suspects[j].lag ? lag : suspects[j].lag;
            suspects[j].has_skipped |= has_skipped(&slots[i], &slots[j]);
        }
        suspects[i].waits += waits_for_silent(&slots[i], has_answered, mesh, group);
    }
    for (int64_t i = 0; i < count; i++) {
        enum blame process = blame_process(&slots[i]);
        if (process < found) {    // enum blame lists the surest reasons first
            found  = process;
            *index = i;
        }
        *waiting += suspects[i].waits > 0;
        worst = is_worse(&slots[i], &suspects[i], &slots[worst], &suspects[worst]) ? i : worst;
    }
    if (found == BLAME_NOBODY) {    // a rank that has not answered may be the cause of a cycle
        bool is_known = suspects[worst].waiters > 0 && (suspects[worst].waits == 0 || count == mesh->world);
        found         = is_known ? BLAME_AWAITED : BLAME_NOBODY;
        *index        = worst;
    }
    *waiting -= found != BLAME_NOBODY && suspects[*index].waits > 0;    // do not count the blamed rank itself
    free(suspects);
    free(has_answered);
    free(group);
    return found;
}
