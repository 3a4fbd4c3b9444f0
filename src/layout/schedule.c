// SPDX-License-Identifier: MIT
// Builds the list of actions (forward and backward passes) of a pipeline stage, simulates all stages in time slots, and
// assigns layers to chunks.
#include "gswbench/schedule.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gswbench/arena.h"

// The order of a stage: `warmup` forward passes, then forward and backward alternately, then the remaining backward
// passes. action() returns microbatch and chunk of the index-th forward or backward pass (from 0).
struct order {
    int64_t warmup, count;    // count: number of forward passes, and of backward passes
    struct schedule_action (*action)(const struct schedule_shape *shape, enum schedule_pass pass, int64_t index);
};

static struct schedule_action plain_action(const struct schedule_shape *shape, enum schedule_pass pass, int64_t index)
{
    (void)shape;
    return (struct schedule_action){.pass = pass, .microbatch = index};
}

// Returns the index-th forward or backward pass of interleaved 1F1B. Microbatches run in groups, one microbatch per
// stage. A group passes the first chunk of a stage, then the second, and so on, before the next group starts. The
// backward pass goes from the last chunk to the first.
static struct schedule_action interleaved_action(const struct schedule_shape *shape, enum schedule_pass pass,
                                                 int64_t index)
{
    int64_t group = index / (shape->stages * shape->chunks), place = index % (shape->stages * shape->chunks);
    int64_t chunk = place / shape->stages;
    return (struct schedule_action){.pass       = pass,
                                    .microbatch = group * shape->stages + place % shape->stages,
                                    .chunk      = pass == SCHEDULE_FORWARD ? chunk : shape->chunks - 1 - chunk};
}

// Returns the order of interleaved 1F1B. The warm-up has the forward passes of the first group of microbatches through
// all chunks but the last, and two passes per later stage (there and back). With overlap it has one more, because each
// backward pass runs together with another microbatch's forward pass.
static struct order interleaved(const struct schedule_shape *shape, int64_t stage)
{
    int64_t groups = (shape->microbatches + shape->stages - 1) / shape->stages;
    return (struct order){.warmup = (shape->chunks - 1) * shape->stages + 2 * (shape->stages - stage - 1) +
                                    (shape->kind == SCHEDULE_OVERLAPPED),
                          .count  = groups * shape->stages * shape->chunks,
                          .action = interleaved_action};
}

int64_t schedule_actions(const struct schedule_shape *shape)
{
    int64_t parts = shape->kind == SCHEDULE_ZERO_BUBBLE ? SCHEDULE_PARTS : SCHEDULE_PASSES;
    return parts * shape->chunks * shape->microbatches;
}

// Finds the forward or backward pass (action->pass) that a stage runs at position `index`; a position has up to one of
// each. Returns false if there is none, or if an incomplete last group of microbatches lacks this microbatch.
static bool find_action(struct schedule_action *action, const struct schedule_shape *shape, const struct order *order,
                        int64_t index)
{
    int64_t nth = action->pass == SCHEDULE_FORWARD ? index : index - order->warmup;
    if (nth < 0 || nth >= order->count) {
        return false;
    }
    *action = order->action(shape, action->pass, nth);
    return action->microbatch < shape->microbatches;
}

void schedule_build(const struct schedule_shape *shape, int64_t stage, struct schedule_action *actions)
{
    bool is_interleaved = shape->chunks > 1 || shape->kind == SCHEDULE_OVERLAPPED;
    // 1F1B: a stage runs one forward pass per later stage, then alternates one forward and one backward pass.
    struct order order =
        is_interleaved
            ? interleaved(shape, stage)
            : (struct order){.warmup = shape->stages - stage - 1, .count = shape->microbatches, .action = plain_action};
    int64_t count = 0, weights = 0;
    for (int64_t i = 0; i < order.warmup + order.count; i++) {
        struct schedule_action forward = {.pass = SCHEDULE_FORWARD}, backward = {.pass = SCHEDULE_BACKWARD};
        bool                   has_forward = find_action(&forward, shape, &order, i),
             has_backward                  = find_action(&backward, shape, &order, i);
        if (has_forward) {
            forward.is_beside = has_backward && shape->kind == SCHEDULE_OVERLAPPED;
            actions[count++]  = forward;
        }
        if (has_backward) {
            actions[count++] = backward;
        }
        if (has_backward && shape->kind == SCHEDULE_ZERO_BUBBLE && backward.microbatch >= stage) {
            actions[count++] = plain_action(shape, SCHEDULE_WEIGHTS, weights++);
        }
    }
    while (count < schedule_actions(shape)) {
        actions[count++] = plain_action(shape, SCHEDULE_WEIGHTS, weights++);
    }
}

int64_t schedule_in_flight(const struct schedule_shape *shape, const struct schedule_action *actions)
{
    int64_t           *now     = memory_allocate((size_t)shape->chunks * sizeof(*now));
    int64_t            maximum = 0;
    enum schedule_pass last    = shape->kind == SCHEDULE_ZERO_BUBBLE ? SCHEDULE_WEIGHTS : SCHEDULE_BACKWARD;
    for (int64_t i = 0; i < schedule_actions(shape); i++) {
        int64_t *of_chunk = &now[actions[i].chunk];
        *of_chunk += (actions[i].pass == SCHEDULE_FORWARD) - (actions[i].pass == last);
        maximum = *of_chunk > maximum ? *of_chunk : maximum;
    }
    free(now);
    return maximum;
}

struct timetable {
    const struct schedule_shape *shape;
    const int64_t               *slots;    // [SCHEDULE_PARTS]: duration of each pass
    int64_t                     *ends;     // end of each action [pass][microbatch][chunk of the model]; 0: not known
};

static int64_t *end_of(const struct timetable *timetable, enum schedule_pass pass, int64_t microbatch, int64_t chunk)
{
    const struct schedule_shape *shape = timetable->shape;
    return &timetable->ends[(pass * shape->microbatches + microbatch) * shape->stages * shape->chunks + chunk];
}

// Returns the time slot at which all inputs of an action are available; -1: not known yet. A backward pass also needs
// the forward pass of its chunk. Weight gradients need only the backward pass of their chunk.
static int64_t ready(const struct timetable *timetable, const struct schedule_action *action, int64_t chunk)
{
    int64_t last = timetable->shape->stages * timetable->shape->chunks - 1;
    int64_t from = action->pass == SCHEDULE_FORWARD ? chunk - 1 : chunk + 1;
    if (action->pass == SCHEDULE_WEIGHTS) {    // the backward pass is earlier in the same list
        return *end_of(timetable, SCHEDULE_BACKWARD, action->microbatch, chunk);
    }
    int64_t own =
        action->pass == SCHEDULE_FORWARD ? 0 : *end_of(timetable, SCHEDULE_FORWARD, action->microbatch, chunk);
    int64_t sent     = from < 0 || from > last ? 0 : *end_of(timetable, action->pass, action->microbatch, from);
    bool    is_known = (action->pass == SCHEDULE_FORWARD || own > 0) && (from < 0 || from > last || sent > 0);
    return !is_known ? -1 : own > sent ? own : sent;
}

// Runs the actions of a stage from `next` until one whose inputs are not known yet, and returns its index. Overlapped
// actions end together.
static int64_t advance(const struct timetable *timetable, int64_t stage, const struct schedule_action *actions,
                       int64_t next, int64_t *begins)
{
    const struct schedule_shape *shape = timetable->shape;
    int64_t                      all   = schedule_actions(shape), count;
    int64_t                      begin = next == 0 ? 0 : begins[next - 1] + timetable->slots[actions[next - 1].pass];
    for (; next < all; next += count) {
        count = actions[next].is_beside ? 2 : 1;
        for (int64_t i = next; i < next + count; i++) {
            int64_t from = ready(timetable, &actions[i], actions[i].chunk * shape->stages + stage);
            if (from < 0) {
                return next;
            }
            begin = from > begin ? from : begin;
        }
        for (int64_t i = next; i < next + count; i++) {
            begins[i] = begin;
            begin += timetable->slots[actions[i].pass];
        }
        for (int64_t i = next; i < next + count; i++) {
            *end_of(timetable, actions[i].pass, actions[i].microbatch, actions[i].chunk * shape->stages + stage) =
                begin;
        }
    }
    return next;
}

int64_t schedule_simulate(const struct schedule_shape *shape, const struct schedule_action *actions,
                          const int64_t slots[SCHEDULE_PARTS], int64_t *begins)
{
    int64_t          count     = schedule_actions(shape);
    struct timetable timetable = {shape, slots,
                                  memory_allocate((size_t)(count * shape->stages) * sizeof(*timetable.ends))};
    int64_t         *next      = memory_allocate((size_t)shape->stages * sizeof(*next));
    int64_t          length = 0, done = 0;
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (int64_t stage = 0; stage < shape->stages; stage++) {
            int64_t from = next[stage];
            next[stage]  = advance(&timetable, stage, actions + stage * count, from, begins + stage * count);
            is_moving |= next[stage] > from;
            done += next[stage] - from;
        }
    }
    for (int64_t stage = 0; stage < shape->stages && done == count * shape->stages; stage++) {
        int64_t last = stage * count + count - 1;
        int64_t end  = begins[last] + slots[actions[last].pass];
        length       = end > length ? end : length;
    }
    free(next);
    free(timetable.ends);
    return length;
}

status schedule_check(const struct schedule_assignment *assignment)
{
    FAIL_IF(assignment->last > 0 && assignment->counts_embedding,
            "[parallel] last_chunk_layers = %" PRId64
            " already sets the layers of the last chunk: set layers_per_chunk_embedding = no",
            assignment->last);
    FAIL_IF(assignment->last > 0 &&
                (assignment->chunks < 2 || assignment->layers - assignment->last < assignment->chunks - 1),
            "[parallel] last_chunk_layers = %" PRId64 " of [model] layers = %" PRId64
            " leaves too few for the other chunks: pp x vp = %" PRId64 " chunks need at least one each",
            assignment->last, assignment->layers, assignment->chunks);
    FAIL_IF(assignment->chunks > assignment->layers + (assignment->counts_embedding ? 2 : 0),
            "[parallel] pp x vp = %" PRId64 " chunks, but [model] layers = %" PRId64
            "%s: every chunk needs at least one",
            assignment->chunks, assignment->layers, assignment->counts_embedding ? ", with embedding and loss" : "");
    return OK;
}

// Returns the number of layers in the chunks before this one, with embedding and head if they count as layers.
static int64_t count_before(const struct schedule_assignment *assignment, int64_t chunk)
{
    int64_t counted         = assignment->layers + (assignment->counts_embedding ? 2 : 0);
    int64_t left            = counted % assignment->chunks;
    bool    is_first_larger = left == assignment->chunks - 1 && left > 0;
    int64_t middle          = chunk > 0 ? chunk - 1 : 0;    // chunks before this one except the first
    int64_t larger =
        (middle < left - is_first_larger ? middle : left - is_first_larger) + (chunk > 0 && is_first_larger);
    return chunk * (counted / assignment->chunks) + larger;
}

struct schedule_layers schedule_layers(const struct schedule_assignment *assignment, int64_t chunk)
{
    struct schedule_assignment assigned = *assignment;
    if (assignment->last > 0) {
        assigned.layers -= assignment->last;
        assigned.chunks--;
        if (chunk == assigned.chunks) {
            return (struct schedule_layers){.first = assigned.layers, .count = assignment->last};
        }
    }
    int64_t first = count_before(&assigned, chunk), end = count_before(&assigned, chunk + 1);
    if (assignment->counts_embedding) {
        first = chunk == 0 ? 0 : first - 1;
        end   = chunk == assignment->chunks - 1 ? assignment->layers : end - 1;
    }
    return (struct schedule_layers){.first = first, .count = end - first};
}
