// SPDX-License-Identifier: MIT
// Builds the simulation of a job. One rank represents each pipeline stage, since all ranks of a stage do the same work
// at the same time. A collective across stages, or a send/receive pair, becomes a rendezvous of tasks. Stages issue
// them in the same order, so the n-th op of one stage meets the n-th op of the other.
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/op_table.h"
#include "internal.h"

// A communicator across all pipeline stages (from and to are -1), or the send/receive pairs from one stage to another.
// The n-th op that each stage issues on it joins the n-th rendezvous.
struct line {
    int32_t  from, to, stream, channel;
    uint32_t axes;
    int32_t *rendezvous_list;    // [rendezvous_count]
    int32_t  rendezvous_count;
    int32_t  calls;    // ops that the stage being added has issued on this line so far
};

struct construction {
    struct predict_pipeline *pipeline;
    struct line             *lines;
    int32_t                  line_count;
};

static int32_t stage_of(const struct plan *plan, int64_t rank)
{
    int64_t place[AXIS_COUNT];
    mesh_coordinates(&plan->mesh, rank, place);
    return (int32_t)place[AXIS_PP];
}

static struct line describe_line(const struct plan *plan, const struct op *op)
{
    const struct communication_shape *shape = &op->shape.communication;
    const struct plan_group          *group = &plan->groups[shape->group];
    // Data that a stage receives on one pipeline stream is sent by its peer on the other pipeline stream.
    bool        is_received = op->kind == OP_RECEIVE && op_stream_is_pipeline(op->stream);
    int32_t     stream      = is_received ? STREAM_PIPELINE_SEND + STREAM_PIPELINE_RECEIVE - op->stream : op->stream;
    struct line line        = {.from = -1, .to = -1, .stream = stream, .axes = group->axes};
    if (op_is_link((enum op_kind)op->kind)) {
        int32_t own = stage_of(plan, plan->rank), peer = stage_of(plan, group->ranks[shape->peer]);
        line.from    = op->kind == OP_SEND ? own : peer;
        line.to      = op->kind == OP_SEND ? peer : own;
        line.channel = shape->channel;
    }
    return line;
}

static struct line *find_line(struct construction *construction, const struct line *like)
{
    for (int32_t i = 0; i < construction->line_count; i++) {
        struct line *line = &construction->lines[i];
        if (line->from == like->from && line->to == like->to && line->stream == like->stream &&
            line->channel == like->channel && line->axes == like->axes) {
            return line;
        }
    }
    LIST_APPEND(construction->lines, construction->line_count, *like);
    return &construction->lines[construction->line_count - 1];
}

static int32_t next_rendezvous(struct simulation *simulation, struct line *line)
{
    if (line->calls == line->rendezvous_count) {
        LIST_APPEND(line->rendezvous_list, line->rendezvous_count, simulation->rendezvous_count);
        LIST_APPEND(simulation->participants, simulation->rendezvous_count,
                    line->from >= 0 ? 2 : simulation->actor_count);
    }
    return line->rendezvous_list[line->calls++];
}

// Returns the rendezvous that the op joins, or -1. Only communication across pipeline stages needs one: all ranks of a
// stage enter a collective at the same time.
static int32_t find_rendezvous(struct construction *construction, const struct plan *plan, const struct op *op)
{
    if (!op_is_communication((enum op_kind)op->kind) ||
        (plan->groups[op->shape.communication.group].axes & 1u << AXIS_PP) == 0 || plan->mesh.size[AXIS_PP] == 1) {
        return -1;
    }
    struct line like = describe_line(plan, op);
    return next_rendezvous(&construction->pipeline->simulation, find_line(construction, &like));
}

static void add_stage(struct construction *construction, int64_t number)
{
    struct actor         *actor = &construction->pipeline->simulation.actors[number];
    struct predict_stage *stage = &construction->pipeline->stages[number];
    const struct plan    *plan  = &stage->plan;
    actor->tasks                = memory_allocate((size_t)plan->op_count * sizeof(*actor->tasks));
    actor->task_count           = plan->op_count;
    stage->rank                 = plan->rank;
    stage->bytes                = plan_total_bytes(plan);
    for (int32_t i = 0; i < construction->line_count; i++) {
        construction->lines[i].calls = 0;
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        actor->tasks[i].rendezvous = find_rendezvous(construction, plan, &plan->ops[i]);
    }
}

// Host launches so far in one forward or backward pass of a microbatch through a layer. The same op of several experts,
// or all ops of a CUDA graph, are one launch in the framework.
enum { PASS_LAUNCHES = 128 };
struct pass {
    struct op_tag    tag;
    bool             has_graph;
    int              launch_count;
    const struct op *launched[PASS_LAUNCHES];
};

static bool is_launched(const struct pass *pass, const struct op *op)
{
    int i = 0;
    while (i < pass->launch_count &&
           (pass->launched[i]->kind != op->kind || pass->launched[i]->tag.part != op->tag.part ||
            pass->launched[i]->tag.makes != op->tag.makes || pass->launched[i]->tag.phase != op->tag.phase)) {
        i++;
    }
    return i < pass->launch_count;
}

// Sets the launch time of a task, unless a launch that includes it was counted already. A forward and a backward
// microbatch may interleave, so each direction has its own struct pass.
static void launch(struct task *task, struct pass passes[2], const struct op *op, const struct cost *cost)
{
    struct pass *pass = &passes[op->tag.phase == PHASE_FORWARD];
    if (pass->tag.layer != op->tag.layer || pass->tag.microbatch != op->tag.microbatch ||
        (pass->tag.phase == PHASE_FORWARD) != (op->tag.phase == PHASE_FORWARD)) {
        *pass = (struct pass){.tag = op->tag};
    }
    if (cost->is_in_graph ? pass->has_graph : is_launched(pass, op)) {
        return;
    }
    if (cost->is_in_graph) {
        pass->has_graph = true;
    } else if (pass->launch_count < PASS_LAUNCHES) {
        pass->launched[pass->launch_count++] = op;
    }
    task->launch_seconds = cost->launch_seconds;
    task->seconds += cost->launch_alone;
}

// With overlap_microbatches, a forward and a backward microbatch compute alternately. A run is a sequence of compute
// ops of one of them. If all-to-alls block compute, the framework issues all of a run's all-to-alls at its end, while
// the other microbatch computes. So the first of them waits for the compute op before the last of them, and the next
// run in the same direction waits for the last.
struct run {
    int32_t microbatch, last;    // last: index of the latest compute op of the run
    int32_t exchange;            // index of the first all-to-all of the run; -1: none
    int32_t awaited[2];          // [is forward]: last all-to-all, for which this microbatch's next run waits; -1: none
};

static void add_wait(struct actor *actor, int32_t index, int32_t until)
{
    struct task *task = &actor->tasks[index];
    int          w    = 0;
    while (w < task->wait_count && actor->tasks[task->wait[w]].stream != actor->tasks[until].stream) {
        w++;
    }
    task->wait[w]    = until;
    task->wait_count = (uint8_t)(w < task->wait_count ? task->wait_count : w + 1);
}

static void add_to_run(struct actor *actor, struct run *run, int32_t index, const struct op *op, bool is_awaited)
{
    int32_t *awaited = &run->awaited[op->tag.phase == PHASE_FORWARD];
    if (is_awaited) {
        run->exchange = run->exchange < 0 ? index : run->exchange;
        *awaited      = index;
        add_wait(actor, run->exchange, run->last);
        return;
    }
    if (op->stream != STREAM_COMPUTE) {
        return;
    }
    if (op->tag.microbatch != run->microbatch) {
        if (*awaited >= 0) {
            add_wait(actor, index, *awaited);
        }
        run->exchange = *awaited = -1;
        run->microbatch          = op->tag.microbatch;
    }
    run->last = index;
}

void predict_cost_stage(struct actor *actor, struct predict_stage *stage, const struct cost_model *model)
{
    struct pass passes[2] = {{.tag = {.layer = -1}}, {.tag = {.layer = -1}}};
    struct run  run       = {.microbatch = -1, .exchange = -1, .awaited = {-1, -1}};
    stage->stall_seconds = stage->measured_seconds = stage->compute_seconds = 0.0;
    for (int32_t i = 0; i < actor->task_count; i++) {
        const struct op *op   = &stage->plan.ops[i];
        struct cost      cost = model->cost(model->state, &stage->plan, op);
        struct task     *task = &actor->tasks[i];
        *task                 = (struct task){.rendezvous = task->rendezvous,
                                              .seconds    = cost.seconds,
                                              .stream     = cost.is_alone && !op->is_aside ? STREAM_COMPUTE : op->stream,
                                              .links      = cost.links,
                                              .processors = cost.processors,
                                              .is_read    = cost.is_read,
                                              .wait_count = op->wait_count};
        memcpy(task->wait, op->wait, sizeof(op->wait));
        if (cost.launch_seconds > 0.0) {
            launch(task, passes, op, &cost);
        }
        add_to_run(actor, &run, i, op, cost.is_alone && op->is_aside);
        stage->stall_seconds += cost.stall_seconds;
        stage->measured_seconds += cost.is_measured && cost.links == 0 ? cost.seconds : 0.0;
        stage->compute_seconds += cost.links == 0 ? cost.seconds : 0.0;
    }
}

void predict_pipeline_cost(struct predict_pipeline *pipeline, const struct cost_model *model)
{
    for (int32_t actor = 0; actor < pipeline->simulation.actor_count; actor++) {
        predict_cost_stage(&pipeline->simulation.actors[actor], &pipeline->stages[actor], model);
    }
}

status predict_pipeline_init(struct predict_pipeline *pipeline, const struct plan_request *request)
{
    struct construction construction = {.pipeline = pipeline};
    int64_t             stages       = request->mesh.size[AXIS_PP];
    *pipeline                        = (struct predict_pipeline){.stages = NULL};
    pipeline->simulation.actor_count = (int32_t)stages;
    pipeline->simulation.actors      = memory_allocate((size_t)stages * sizeof(*pipeline->simulation.actors));
    pipeline->stages                 = memory_allocate((size_t)stages * sizeof(*pipeline->stages));
    status result                    = OK;
    for (int64_t stage = 0; stage < stages && !failed(&result); stage++) {
        result = plan_build_stage(&pipeline->stages[stage].plan, request, stage);
        if (!failed(&result)) {
            add_stage(&construction, stage);
        }
    }
    for (int32_t i = 0; i < construction.line_count; i++) {
        free(construction.lines[i].rendezvous_list);
    }
    free(construction.lines);
    return result;
}

void predict_pipeline_free(struct predict_pipeline *pipeline)
{
    for (int32_t actor = 0; actor < pipeline->simulation.actor_count; actor++) {
        free(pipeline->simulation.actors[actor].tasks);
        plan_free(&pipeline->stages[actor].plan);
    }
    free(pipeline->simulation.actors);
    free(pipeline->simulation.participants);
    free(pipeline->stages);
}
