// SPDX-License-Identifier: MIT
// Derives the timeline of a traced or predicted step: activation memory on rank 0, and the pipeline actions (such as
// the forward pass of a microbatch) of a stage.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/result.h"
#include "gswbench/text.h"

static double find_end(const struct plan *plan, const struct op_time *times)
{
    double end = 0.0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        end = fmax(end, times[i].end);
    }
    return end;
}

// Start or end of a tensor's lifetime.
struct change {
    double  seconds;
    int64_t bytes;    // negative at the end of the lifetime
};

// Sorts changes by time. At equal times, releases come before allocations.
static int by_time(const void *a, const void *b)
{
    const struct change *one = a, *other = b;
    int                  order = (one->seconds > other->seconds) - (one->seconds < other->seconds);
    return order != 0 ? order : (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

// Returns two changes of activation memory per tensor, sorted by time. Memory grows when the first op that uses the
// tensor starts, and shrinks when the last op that uses it ends, on any stream. A tensor that is no activation has two
// changes of 0 bytes. The caller frees the array.
static struct change *find_changes(const struct plan *plan, const struct op_time *times)
{
    struct change *changes = memory_allocate(2 * (size_t)plan->tensor_count * sizeof(*changes));
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        changes[2 * i]     = (struct change){.seconds = INFINITY};
        changes[2 * i + 1] = (struct change){.seconds = -INFINITY};
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        for (int slot = 0; slot < op->operand_count; slot++) {
            if (op->operand[slot] >= 0 && plan->tensors[op->operand[slot]].storage == STORAGE_ACTIVATION) {
                int32_t        whole = plan->tensors[op->operand[slot]].whole;
                int64_t        bytes = number_round_up(plan->tensors[whole].bytes, PLAN_ALIGNMENT);
                struct change *first = &changes[2 * whole], *last = &changes[2 * whole + 1];
                *first = (struct change){fmin(first->seconds, times[i].begin), bytes};
                *last  = (struct change){fmax(last->seconds, times[i].end), -bytes};
            }
        }
    }
    qsort(changes, 2 * (size_t)plan->tensor_count, sizeof(*changes), by_time);
    return changes;
}

void result_set_moments(struct result *result, const struct plan *plan, const struct op_time *times)
{
    struct change *changes = find_changes(plan, times);
    double         part    = find_end(plan, times) / RESULT_MOMENTS;
    int64_t        bytes   = 0;
    int32_t        next    = 0;
    result->moments        = memory_resize(result->moments, RESULT_MOMENTS * sizeof(*result->moments));
    result->moment_count   = RESULT_MOMENTS;
    for (int i = 0; i < RESULT_MOMENTS; i++) {
        result->moments[i] = (struct result_moment){i * part, bytes};
        for (; next < 2 * plan->tensor_count && changes[next].seconds < (i + 1) * part; next++) {
            bytes += changes[next].bytes;
            result->moments[i].bytes = bytes > result->moments[i].bytes ? bytes : result->moments[i].bytes;
        }
    }
    free(changes);
}

static bool is_same_action(const struct op *one, const struct op *other)
{
    return one->tag.phase == other->tag.phase && one->tag.chunk == other->tag.chunk &&
           one->tag.microbatch == other->tag.microbatch;
}

static struct result_action describe(const struct plan *plan, const struct op *op, const struct op_time *time)
{
    int64_t place[AXIS_COUNT];
    mesh_coordinates(&plan->mesh, plan->rank, place);
    bool                 is_of_all = op->tag.phase == PHASE_REDUCE || op->tag.phase == PHASE_OPTIMIZER;
    struct result_action action    = {.stage      = place[AXIS_PP],
                                      .chunk      = is_of_all ? -1 : op->tag.chunk,
                                      .microbatch = is_of_all ? -1 : op->tag.microbatch,
                                      .begin      = time->begin,
                                      .end        = time->end};
    text_copy(action.phase, sizeof(action.phase), op_phase_name((enum phase)op->tag.phase));
    return action;
}

// Returns all pipeline actions, which may be more than RESULT_ACTIONS; the caller frees them.
static struct result_action *find_all(const struct plan *plan, const struct op_time *times, int64_t *count)
{
    struct result_action *actions = memory_allocate((size_t)plan->op_count * sizeof(*actions));
    const struct op      *last    = NULL;
    *count                        = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->stream != STREAM_COMPUTE) {
            continue;
        }
        if (last != NULL && is_same_action(last, op)) {
            actions[*count - 1].end = times[i].end;
        } else {
            actions[(*count)++] = describe(plan, op, &times[i]);
        }
        last = op;
    }
    return actions;
}

int64_t result_find_actions(struct result_action actions[RESULT_ACTIONS], const struct plan *plan,
                            const struct op_time *times)
{
    int64_t               count, found = 0, next = 0;
    struct result_action *all  = find_all(plan, times, &count);
    double                part = find_end(plan, times) / RESULT_ACTIONS;
    if (count <= RESULT_ACTIONS) {
        memcpy(actions, all, (size_t)count * sizeof(*actions));
        found = count;
    }
    for (int i = 0; i < RESULT_ACTIONS && count > RESULT_ACTIONS; i++) {
        double middle = (i + 0.5) * part;
        while (next < count && all[next].end < middle) {
            next++;
        }
        if (next < count && all[next].begin <= middle) {
            actions[found]       = all[next];
            actions[found].begin = i * part;
            actions[found++].end = (i + 1) * part;
        }
    }
    free(all);
    return found;
}

void result_add_actions(struct result *result, const struct result_action *actions, int64_t count)
{
    result->actions = memory_resize(result->actions, (size_t)(result->action_count + count) * sizeof(*actions));
    memcpy(result->actions + result->action_count, actions, (size_t)count * sizeof(*actions));
    result->action_count += count;
}
