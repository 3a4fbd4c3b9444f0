// SPDX-License-Identifier: MIT
// A rank as others see it.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "gswbench/text.h"
#include "internal.h"

// The state stands behind the name of the program, which is in brackets and may have any character.
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
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        post->lanes[lane] = (struct lane_post){.op   = shown->progress.op[lane] - 1,
                                               .axes = shown->axes[lane],
                                               .mark = shown->marks[lane],
                                               .peer = shown->peers[lane]};
    }
}

void post_show_transfers(struct shown *shown, const struct plan *plan)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        int              index = shown->progress.op[lane] - 1;
        const struct op *op    = index >= 0 ? &plan->ops[index] : NULL;
        uint32_t         axes = 0, mark = 0;
        int64_t          peer = -1;
        if (op != NULL && shown->progress.moves[lane] != 0) {
            const struct plan_group *group = &plan->groups[op->shape.transfer.group];
            axes                           = group->axes;
            mark                           = (uint32_t)(op->shape.transfer.elements * OP_COUNT + op->kind);
            if (op->kind == OP_SEND || op->kind == OP_RECEIVE) {
                peer = group->ranks[op->shape.transfer.peer];
            }
        }
        shown->axes[lane]  = axes;
        shown->marks[lane] = mark;
        shown->peers[lane] = (int)peer;
    }
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
