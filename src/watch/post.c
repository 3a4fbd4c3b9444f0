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

void post_read(struct post *post, const struct shown *shown, const char *host)
{
    double now = clock_seconds();
    *post      = (struct post){.rank  = shown->rank,
                               .pid   = shown->pid,
                               .phase = shown->phase,
                               .step  = shown->step,
                               .still = now - shown->moved,
                               .age   = now - shown->looked,
                               .state = process_state(shown->pid)};
    text_copy(post->host, sizeof(post->host), host);
    for (size_t i = 0; i < sizeof(post->where); i++) {
        post->where[i] = atomic_load_explicit(&shown->where[i], memory_order_relaxed);
    }
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        post->lanes[lane] = (struct lane_post){.op   = shown->progress.op[lane] - 1,
                                               .axes = shown->axes[lane],
                                               .mark = shown->marks[lane],
                                               .peer = shown->peers[lane]};
    }
}

// In other work than steps, a group of two may be any two ranks, so each records the other as its peer.
static void show_transfers(struct shown *shown, const struct plan *plan, bool is_part)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        int              index = shown->progress.op[lane] - 1;
        const struct op *op    = index >= 0 && plan != NULL ? &plan->ops[index] : NULL;
        uint32_t         axes = 0, mark = 0;
        int64_t          peer = -1;
        if (op != NULL && shown->progress.moves[lane] != 0) {
            const struct plan_group *group = &plan->groups[op->shape.transfer.group];
            axes                           = group->axes;
            mark                           = (uint32_t)(op->shape.transfer.elements * OP_COUNT + op->kind);
            if (op->kind == OP_SEND || op->kind == OP_RECEIVE) {
                peer = group->ranks[op->shape.transfer.peer];
            } else if (is_part && group->size == 2) {
                peer = group->ranks[1 - group->index];
                mark = 2 * mark + (uint32_t)group->index;    // differs, as for send and receive
            }
        }
        shown->axes[lane]  = axes;
        shown->marks[lane] = mark;
        shown->peers[lane] = (int)peer;
    }
}

static void name_own_place(const struct post *post, const struct plan *plan, char *text, size_t bytes)
{
    int32_t found = post_op(post);
    if (found >= 0 && found < plan->op_count && post->phase <= WATCH_STEP) {
        char name[240];
        snprintf(text, bytes, "step %" PRId64 ", %s", post->step, plan_op_name(plan, found, name, sizeof(name)));
        return;
    }
    static const char *const names[] = {[WATCH_OPENING] = "before the first step",
                                        [WATCH_STEP]    = "between ops of step",
                                        [WATCH_BETWEEN] = "after step",
                                        [WATCH_CLOSING] = "after the last step",
                                        [WATCH_FILE]    = "at a file",
                                        [WATCH_FILES]   = "between files"};
    if (post->phase < 0 || post->phase >= (int32_t)(sizeof(names) / sizeof(names[0]))) {    // other version
        text_copy(text, bytes, post->where);
        return;
    }
    bool has_step = post->phase == WATCH_STEP || post->phase == WATCH_BETWEEN;
    snprintf(text, bytes, has_step ? "%s %" PRId64 : "%s", names[post->phase], post->step);
}

static int64_t stage_of(const struct plan *plan, int64_t rank)
{
    int64_t coordinates[AXIS_COUNT];
    mesh_coordinates(&plan->mesh, rank, coordinates);
    return coordinates[AXIS_PP];
}

void post_name_place(const struct post *post, const struct plan *plan, char *text, size_t bytes)
{
    bool is_own = plan != NULL && stage_of(plan, post->rank) == stage_of(plan, plan->rank) && post->pid >= 0;
    if (is_own && post->phase != WATCH_FILE) {
        name_own_place(post, plan, text, bytes);
    } else if (post->phase != WATCH_FILE && strstr(post->where, ", op ") == NULL &&
               post_op(post) >= 0) {    // the rank has not described the op yet
        snprintf(text, bytes, "%s, op %" PRId32, post->where, post_op(post));
    } else {
        text_copy(text, bytes, post->where);
    }
}

static void show_where(struct shown *shown, const char *where)
{
    for (size_t i = 0; i < sizeof(shown->where); i++) {
        atomic_store_explicit(&shown->where[i], where[i], memory_order_relaxed);
    }
}

void post_show(struct shown *shown, const struct plan *plan)
{
    struct post post;
    char        where[sizeof(shown->where)];
    show_transfers(shown, plan, false);
    post_read(&post, shown, "");
    name_own_place(&post, plan, where, sizeof(where));
    show_where(shown, where);
}

void post_show_part(struct shown *shown, const struct plan *plan, const char *words)
{
    struct post post;
    char        where[sizeof(shown->where)], name[240];
    show_transfers(shown, plan, true);
    post_read(&post, shown, "");
    int32_t op = plan != NULL ? post_op(&post) : -1;
    snprintf(where, sizeof(where), op >= 0 ? "%.79s, %.79s" : "%s", words,
             op >= 0 ? plan_op_name(plan, op, name, sizeof(name)) : "");
    show_where(shown, where);
}

int32_t post_op(const struct post *post)
{
    int32_t furthest = -1;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (post->lanes[lane].axes != 0 && post->lanes[lane].op > furthest) {
            furthest = post->lanes[lane].op;
        }
    }
    return furthest >= 0 ? furthest : post->lanes[LANE_COMPUTE].op;
}
