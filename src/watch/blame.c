// SPDX-License-Identifier: MIT
// Finds the rank that blocks the others. A rank waits for ranks that have not reached its communication op, or the end
// of its step. A rank is to blame if others wait for it and it waits for none. A stopped or dead process is always to
// blame.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

static const double DEAF_SECONDS = 3;    // 30 polls

// Position of a rank: 2 s in step s and at a checkpoint file after it, 2 s + 1 while it then waits for other ranks.
static int64_t place_of(const struct slot *slot)
{
    switch ((enum watch_phase)slot->phase) {
    case WATCH_OPENING:
        return -1;
    case WATCH_STEP:
    case WATCH_FILE:
        return 2 * slot->step;
    case WATCH_BETWEEN:
    case WATCH_FILES:
        return 2 * slot->step + 1;
    case WATCH_CLOSING:
        return INT64_MAX;
    }
    return -1;
}

static bool is_in_step(const struct slot *slot)
{
    return slot->phase == WATCH_STEP || slot->phase == WATCH_OPENING;
}

// Whether the rank has started an op, and is in no communication op. is_idle: it has started no op.
static bool is_computing(const struct slot *slot, bool *is_idle)
{
    bool moves = false;
    *is_idle   = true;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        *is_idle &= slot->streams[stream].op < 0;
        moves |= slot->streams[stream].axes != 0;
    }
    return !*is_idle && !moves;
}

// Whether the other rank is in the same communication op as this stream.
static bool has_come(const struct slot *slot, int stream, const struct slot *other)
{
    if (slot->streams[stream].peer < 0) {
        return other->streams[stream].axes == slot->streams[stream].axes &&
               other->streams[stream].mark == slot->streams[stream].mark;
    }
    for (int i = 0; i < STREAM_COUNT; i++) {    // a send pairs with a receive
        const struct stream_slot *met = &other->streams[i];
        if (met->axes != 0 && met->peer == slot->rank && met->mark != slot->streams[stream].mark) {
            return true;
        }
    }
    return false;
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

// Whether a rank waits for the other one. group: scratch, [world].
static bool waits_for(const struct slot *slot, const struct slot *other, const struct mesh *mesh, int64_t *group)
{
    if (slot == other) {
        return false;
    }
    if (!is_in_step(slot)) {
        return place_of(other) < place_of(slot);
    }
    bool is_idle, other_is_idle;
    is_computing(slot, &is_idle);
    if (is_idle) {    // it has finished its isolated ops, and waits for ranks that have not
        return is_computing(other, &other_is_idle) && place_of(other) == place_of(slot);
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (slot->streams[stream].axes != 0 && !has_come(slot, stream, other) &&
            is_member(slot, stream, other, mesh, group)) {
            return true;
        }
    }
    return false;
}

// Whether a rank waits for ranks that have not answered: in a communication op, or for the end of their step.
static bool waits_elsewhere(const struct slot *slot, const bool *is_here, const struct mesh *mesh, int64_t *group)
{
    bool waits = false;
    for (int64_t rank = 0; rank < mesh->world && !is_in_step(slot) && !waits; rank++) {
        waits = !is_here[rank];
    }
    for (int stream = 0; stream < STREAM_COUNT && is_in_step(slot); stream++) {
        const struct stream_slot *at = &slot->streams[stream];
        if (at->axes == 0) {
            continue;
        }
        mesh_group_ranks(mesh, slot->rank, at->axes, group);
        for (int64_t i = 0; i < mesh_group_size(mesh, at->axes); i++) {
            waits |= !is_here[group[i]] && (at->peer < 0 || at->peer == group[i]);
        }
    }
    return waits;
}

static enum blame blame_process(const struct slot *slot)
{
    switch (slot->state) {
    case '-':
    case 'Z':
    case 'X':
        return BLAME_GONE;
    case 'T':
    case 't':
        return BLAME_STOPPED;
    default:
        return slot->age > DEAF_SECONDS ? BLAME_DEAF : BLAME_NOBODY;
    }
}

// Whether the first rank is more likely to blame than the second. A rank that waits for no other rank is. If all wait
// in a cycle, one has skipped a communication op, so the rank that is furthest ahead is.
static bool is_worse(const struct slot *first, int64_t first_waits, const struct slot *second, int64_t second_waits)
{
    if ((first_waits == 0) != (second_waits == 0)) {
        return first_waits == 0;
    }
    return place_of(first) != place_of(second) ? place_of(first) > place_of(second) : slot_op(first) > slot_op(second);
}

enum blame blame_find(const struct slot *slots, int64_t count, const struct mesh *mesh, int64_t *index,
                      int64_t *waiting)
{
    enum blame found   = BLAME_NOBODY;
    int64_t   *group   = memory_allocate((size_t)mesh->world * sizeof(*group));
    int64_t   *waits   = memory_allocate((size_t)count * sizeof(*waits));      // ranks that each waits for
    int64_t   *waiters = memory_allocate((size_t)count * sizeof(*waiters));    // ranks that wait for each
    bool      *is_here = memory_allocate((size_t)mesh->world * sizeof(*is_here));
    int64_t    worst   = 0;
    *waiting           = 0;
    for (int64_t i = 0; i < count; i++) {
        is_here[slots[i].rank] = true;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < count; j++) {
            bool is_awaited = waits_for(&slots[i], &slots[j], mesh, group);
            waits[i] += is_awaited;
            waiters[j] += is_awaited;
        }
        waits[i] += waits_elsewhere(&slots[i], is_here, mesh, group);
    }
    for (int64_t i = 0; i < count; i++) {
        enum blame process = blame_process(&slots[i]);
        if (process < found) {
            found  = process;
            *index = i;
        }
        *waiting += waits[i] > 0;
        if (waiters[i] > 0 && (waiters[worst] == 0 || is_worse(&slots[i], waits[i], &slots[worst], waits[worst]))) {
            worst = i;
        }
    }
    if (found == BLAME_NOBODY) {
        bool is_known = waiters[worst] > 0 && (waits[worst] == 0 || count == mesh->world);
        found         = is_known ? BLAME_AWAITED : BLAME_NOBODY;
        *index        = worst;
    }
    *waiting -= found != BLAME_NOBODY && waits[*index] > 0;    // the blamed rank may wait as well
    free(is_here);
    free(group);
    free(waits);
    free(waiters);
    return found;
}
