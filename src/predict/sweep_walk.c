// SPDX-License-Identifier: MIT
// Walks a stage's compute stream in order, from the arrival of its first microbatch. Time restarts at each op that
// waits for another stage (a segment), as if all inputs from earlier segments were ready. If the step has more
// microbatches than the plan, each microbatch and chunk is a segment.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

struct walk {
    const struct plan   *plan;
    const struct task   *tasks;
    bool                 has_all;    // the plan has all microbatches of the step
    double               lane_ends[LANE_COUNT];
    double              *ends;        // [op]
    bool                *is_input;    // [op]: on another lane, after an input from another stage
    int32_t              first;       // first op of the segment
    const struct op_tag *tag;         // of the segment
};

static void begin_segment(struct walk *walk, int32_t index, const struct op *op)
{
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        walk->lane_ends[lane] = lane == LANE_COMPUTE ? walk->lane_ends[lane] : -INFINITY;
    }
    walk->first = index;
    walk->tag   = &op->tag;
}

static bool waits_for_stage(const struct walk *walk, const struct op *op)
{
    for (int w = 0; w < op->wait_count; w++) {
        if (walk->is_input[op->wait[w]]) {
            return true;
        }
    }
    return false;
}

static bool is_received(const struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    bool             is_receive =
        op->kind == OP_RECEIVE && (walk->plan->groups[op->shape.transfer.group].axes & 1u << AXIS_PP) != 0;
    return walk->tasks[index].lane != LANE_COMPUTE && (is_receive || waits_for_stage(walk, op));
}

// Ops of no microbatch, such as the optimizer, continue the segment.
static bool begins_segment(const struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    bool             is_other =
        walk->tag == NULL ||
        (op->tag.microbatch >= 0 && (op->tag.microbatch != walk->tag->microbatch || op->tag.chunk != walk->tag->chunk));
    return op->lane == LANE_COMPUTE && (walk->tag == NULL || (is_other && !walk->has_all) || waits_for_stage(walk, op));
}

static double latest_wait(const struct walk *walk, const struct op *op)
{
    double latest = -INFINITY;
    for (int w = 0; w < op->wait_count; w++) {
        latest = op->wait[w] >= walk->first ? fmax(latest, walk->ends[op->wait[w]]) : latest;
    }
    return latest;
}

// Returns the seconds that the op adds to its lane.
static double pass(struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    if (begins_segment(walk, index)) {
        begin_segment(walk, index, op);
    }
    double *lane_end = &walk->lane_ends[walk->tasks[index].lane], before = *lane_end;
    double  begin         = fmax(before, latest_wait(walk, op));
    walk->is_input[index] = is_received(walk, index);
    *lane_end = walk->ends[index] = begin + walk->tasks[index].seconds;
    return *lane_end - before;
}

// The pass that is being walked.
struct course {
    struct sweep_turn *turn;    // NULL: none
    double             begin, input, made;
    bool               has_input;
};

// Pass of a compute op, or NULL. The head belongs to the backward pass.
static struct sweep_turn *turn_of(const struct sweep_stage *stage, const struct plan *plan, const struct op *op)
{
    bool    is_forward = op->tag.phase == PHASE_FORWARD && op->tag.layer < plan->model.layers;
    int64_t action     = is_forward ? SCHEDULE_FORWARD : SCHEDULE_BACKWARD;
    int64_t place      = (action * plan->train.accumulation + op->tag.microbatch) * plan->mesh.vp;
    return op->tag.microbatch < 0 ? NULL : &stage->turns[place + (op->tag.chunk > 0 ? op->tag.chunk : 0)];
}

static void begin_turn(struct course *course, struct sweep_turn *turn, double now)
{
    bool is_over = turn != NULL && turn->before + turn->through > 0.0;    // deferred head of a finished pass
    *course      = (struct course){.turn = is_over ? NULL : turn, .begin = now, .input = now, .made = INFINITY};
}

// Adds a compute op or a send to its pass.
static void follow_turn(struct course *course, const struct sweep_stage *stage, const struct walk *walk, int32_t index,
                        double seconds)
{
    const struct op *op  = &walk->plan->ops[index];
    double           end = walk->lane_ends[LANE_COMPUTE];
    if (walk->tasks[index].lane == LANE_COMPUTE) {
        struct sweep_turn *turn = turn_of(stage, walk->plan, op);
        if (turn != course->turn) {
            begin_turn(course, turn, end - seconds);
        }
        if (waits_for_stage(walk, op) && !course->has_input) {
            course->input     = end - seconds;
            course->has_input = true;
        }
    } else {
        course->made = fmax(latest_wait(walk, op), course->input);
    }
    if (course->turn != NULL) {
        double made   = course->made == INFINITY ? end : course->made;
        *course->turn = (struct sweep_turn){course->input - course->begin, made - course->input, end - made};
    }
}

// Last compute op before the stage's last send; -1: the stage sends nothing.
static int32_t find_last_turn(const struct plan *plan)
{
    for (int32_t i = plan->op_count - 1; i >= 0; i--) {
        const struct op *op = &plan->ops[i];
        for (int w = 0; w < op->wait_count && op->lane == LANE_PIPELINE_SEND; w++) {
            if (plan->ops[op->wait[w]].lane == LANE_COMPUTE) {
                return op->wait[w];
            }
        }
    }
    return -1;
}

void sweep_time_stage(struct sweep_stage *stage, const struct plan *plan, const struct machine *machine, int64_t more)
{
    struct predict_stage costed    = {.plan = *plan};
    struct actor         actor     = {.tasks      = memory_allocate((size_t)plan->op_count * sizeof(*actor.tasks)),
                                      .task_count = plan->op_count};
    struct walk          walk      = {.plan     = plan,
                                      .tasks    = actor.tasks,
                                      .has_all  = more == 0,
                                      .ends     = memory_allocate((size_t)plan->op_count * sizeof(*walk.ends)),
                                      .is_input = memory_allocate((size_t)plan->op_count * sizeof(*walk.is_input))};
    struct course        course    = {.turn = NULL};
    int32_t              last_turn = find_last_turn(plan);
    bool                 is_first  = true;
    double launched = 0.0, again = 0.0;    // by the host, in all; by a microbatch between the first and the last
    predict_cost_stage(&actor, &costed, &(struct cost_model){predict_cost, machine});
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op      = &plan->ops[i];
        double           seconds = pass(&walk, i);
        launched += actor.tasks[i].launch_seconds;
        again += op->tag.microbatch == 1 && plan->train.accumulation > 2 ? actor.tasks[i].launch_seconds : 0.0;
        if (actor.tasks[i].lane == LANE_COMPUTE || op->lane == LANE_PIPELINE_SEND) {
            follow_turn(&course, stage, &walk, i, seconds);
        }
        if (actor.tasks[i].lane != LANE_COMPUTE) {
            continue;
        }
        // Ops before the first input from another stage overlap with the wait for it and do not count.
        if (waits_for_stage(&walk, op) && is_first) {
            stage->last_turns = stage->all = 0.0;
        }
        is_first &= op->tag.microbatch <= 0 && op->tag.phase == PHASE_FORWARD && !waits_for_stage(&walk, op);
        stage->seconds[op->tag.microbatch + 1] += seconds;
        stage->all += seconds;
        stage->last_turns += i <= last_turn ? seconds : 0.0;
        stage->rest = op->tag.microbatch < 0 ? stage->rest + seconds : 0.0;
    }
    stage->loaded = fmax(launched + (double)more * again, sweep_loaded_seconds(plan, actor.tasks, machine, more)) +
                    costed.stall_seconds;
    stage->all += costed.stall_seconds;
    stage->rest += costed.stall_seconds;
    free(actor.tasks);
    free(walk.ends);
    free(walk.is_input);
}

void sweep_time_turns(struct sweep_turn *turns, const struct plan *plan, const struct machine *machine)
{
    struct sweep_stage stage = {.turns = turns};
    stage.seconds            = memory_allocate((size_t)(plan->train.accumulation + 1) * sizeof(double));
    sweep_time_stage(&stage, plan, machine, 1);
    free(stage.seconds);
}
