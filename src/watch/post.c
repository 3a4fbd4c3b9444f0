// SPDX-License-Identifier: MIT
// Publishes and describes the state of a rank.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "gswbench/text.h"
#include "internal.h"

// In /proc/PID/stat, the state follows the command in parentheses, which may contain any character.
static char process_state(int pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return '-';
    }
    ssize_t used = read(file, text, sizeof(text) - 1);
    close(file);
    text[used > 0 ? used : 0] = '\0';
    const char *bracket       = strrchr(text, ')');
    return bracket != NULL && bracket[1] == ' ' ? bracket[2] : '?';
}

void shown_text_write(_Atomic char to[SHOWN_BYTES], const char from[SHOWN_BYTES])
{
    for (size_t i = 0; i < SHOWN_BYTES; i++) {
        atomic_store_explicit(&to[i], from[i], memory_order_relaxed);
    }
}

void shown_text_read(char to[SHOWN_BYTES], const _Atomic char from[SHOWN_BYTES])
{
    for (size_t i = 0; i < SHOWN_BYTES; i++) {
        to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
    }
}

void slot_read(struct slot *slot, const struct shown *shown, const char *host)
{
    double now = clock_seconds();
    *slot      = (struct slot){.rank  = shown->rank,
                               .pid   = shown->pid,
                               .phase = shown->phase,
                               .step  = shown->step,
                               .still = now - shown->moved,
                               .age   = now - shown->looked,
                               .state = process_state(shown->pid)};
    text_copy(slot->host, sizeof(slot->host), host);
    shown_text_read(slot->where, shown->where);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot->streams[stream] = (struct stream_slot){.op   = shown->progress.op[stream] - 1,
                                                     .axes = shown->axes[stream],
                                                     .mark = shown->marks[stream],
                                                     .peer = shown->peers[stream]};
    }
}

// In other work than steps, a group of two may be any two ranks, so each records the other as its peer.
static void show_communications(struct shown *shown, const struct plan *plan, bool is_part)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        int              index = shown->progress.op[stream] - 1;
        const struct op *op    = index >= 0 && plan != NULL ? &plan->ops[index] : NULL;
        uint32_t         axes = 0, mark = 0;
        int64_t          peer = -1;
        if (op != NULL && shown->progress.moves[stream] != 0) {
            const struct plan_group *group = &plan->groups[op->shape.communication.group];
            axes                           = group->axes;
            mark                           = (uint32_t)(op->shape.communication.elements * OP_COUNT + op->kind);
            if (op->kind == OP_SEND || op->kind == OP_RECEIVE) {
                peer = group->ranks[op->shape.communication.peer];
            } else if (is_part && group->size == 2) {
                peer = group->ranks[1 - group->index];
                mark = 2 * mark + (uint32_t)group->index;    // differs, as for send and receive
            }
        }
        shown->axes[stream]  = axes;
        shown->marks[stream] = mark;
        shown->peers[stream] = (int)peer;
    }
}

static void name_own_place(const struct slot *slot, const struct plan *plan, char *text, size_t bytes)
{
    int32_t found = slot_op(slot);
    if (found >= 0 && found < plan->op_count && slot->phase <= WATCH_STEP) {
        char name[240];
        snprintf(text, bytes, "step %" PRId64 ", %s", slot->step, plan_op_name(plan, found, name, sizeof(name)));
        return;
    }
    static const char *const names[] = {[WATCH_OPENING] = "before the first step",
                                        [WATCH_STEP]    = "between ops of step",
                                        [WATCH_BETWEEN] = "after step",
                                        [WATCH_CLOSING] = "after the last step",
                                        [WATCH_FILE]    = "at a file",
                                        [WATCH_FILES]   = "between files"};
    if (slot->phase < 0 || slot->phase >= (int32_t)(sizeof(names) / sizeof(names[0]))) {    // other version
        text_copy(text, bytes, slot->where);
        return;
    }
    bool has_step = slot->phase == WATCH_STEP || slot->phase == WATCH_BETWEEN;
    snprintf(text, bytes, has_step ? "%s %" PRId64 : "%s", names[slot->phase], slot->step);
}

static int64_t stage_of(const struct plan *plan, int64_t rank)
{
    int64_t coordinates[AXIS_COUNT];
    mesh_coordinates(&plan->mesh, rank, coordinates);
    return coordinates[AXIS_PP];
}

void slot_name_place(const struct slot *slot, const struct plan *plan, char *text, size_t bytes)
{
    bool is_own = plan != NULL && stage_of(plan, slot->rank) == stage_of(plan, plan->rank) && slot->pid >= 0;
    if (is_own && slot->phase != WATCH_FILE) {
        name_own_place(slot, plan, text, bytes);
    } else if (slot->phase != WATCH_FILE && strstr(slot->where, ", op ") == NULL &&
               slot_op(slot) >= 0) {    // the rank has not described the op yet
        snprintf(text, bytes, "%s, op %" PRId32, slot->where, slot_op(slot));
    } else {
        text_copy(text, bytes, slot->where);
    }
}

void slot_show(struct shown *shown, const struct plan *plan)
{
    struct slot slot;
    char        where[SHOWN_BYTES];
    show_communications(shown, plan, false);
    slot_read(&slot, shown, "");
    name_own_place(&slot, plan, where, sizeof(where));
    shown_text_write(shown->where, where);
}

void slot_show_part(struct shown *shown, const struct plan *plan, const char *words)
{
    struct slot slot;
    char        where[SHOWN_BYTES], name[240];
    show_communications(shown, plan, true);
    slot_read(&slot, shown, "");
    int32_t op = plan != NULL ? slot_op(&slot) : -1;
    snprintf(where, sizeof(where), op >= 0 ? "%.79s, %.79s" : "%s", words,
             op >= 0 ? plan_op_name(plan, op, name, sizeof(name)) : "");
    shown_text_write(shown->where, where);
}

int32_t slot_op(const struct slot *slot)
{
    int32_t furthest = -1;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (slot->streams[stream].axes != 0 && slot->streams[stream].op > furthest) {
            furthest = slot->streams[stream].op;
        }
    }
    return furthest >= 0 ? furthest : slot->streams[STREAM_COMPUTE].op;
}
