// SPDX-License-Identifier: MIT
// Appends all microbatches of a step. The first half appends one pipeline action, which is the forward or backward pass
// of a microbatch through a pipeline chunk: it gathers weights, appends the blocks (layers, embedding, head) and
// reduces gradients. The second half replays the pipeline schedule.
#include "block.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/linear.h"
#include "gswbench/plan_build.h"

// A pipeline action and its chunk. model_chunk: index of the chunk in the model. is_first, is_last: whether the chunk
// is the first or the last of the model.
struct action {
    enum schedule_pass pass;
    int64_t            microbatch, model_chunk, first_layer, end_layer;
    bool               is_first, is_last;
    struct op_tag      tag;
};

// Progress of appending an action, block by block. A block is appended in parts, which end at expert all-to-alls.
struct progress {
    struct action           action;
    int32_t                 received;    // residual stream or its gradient from another chunk; -1: none
    struct residual_stream *end;         // output of the model's last chunk, input of the head
    bool                    has_begun;
    int64_t                 place;       // next block, as its index in builder->blocks
    int                     part;        // next part of this block
    struct residual_stream  stream;      // forward pass: input of the next block
    int32_t                 gradient;    // backward pass: result of the previous part
};

// Returns whether the weights of an FSDP unit stay gathered between the forward and the backward pass.
static bool stays_gathered(const struct builder *builder, int32_t unit)
{
    return builder->reshard == RESHARD_NEVER ||
           (builder->reshard == RESHARD_EXCEPT_LAST &&
            builder->plan->tensors[builder->plan->units[unit].weight].layer == builder->plan->model.layers - 1);
}

static int32_t unit_of_head(const struct builder *builder)
{
    return builder->blocks[block_head(&builder->plan->model)].first_unit;
}

// Returns whether the last stage reads the embedding table, because the head is tied or the model has MTP modules.
static bool last_stage_reads_embedding(const struct plan *plan)
{
    return plan->model.tied || plan->model.predicted_tokens > 0;
}

// Returns the FSDP unit of the embedding table if the last stage reads that table, else the unit of the head.
static int32_t unit_of_table(const struct builder *builder)
{
    return last_stage_reads_embedding(builder->plan) ? builder->blocks[0].first_unit : unit_of_head(builder);
}

static int32_t end_of_block(const struct builder *builder, int64_t place)
{
    return builder->blocks[place].first_unit + builder->blocks[place].unit_count;
}

// Sets the range of FSDP units that the following ops may gather and reduce: the units of the action's chunk.
static void set_units(struct builder *builder, const struct action *action)
{
    bool is_empty       = action->first_layer == action->end_layer;    // no layers, only embedding or head
    builder->first_unit = action->is_first ? 0
                          : is_empty       ? unit_of_table(builder)
                                           : builder->blocks[action->first_layer + 1].first_unit;
    builder->end_unit   = action->is_last ? builder->plan->unit_count
                          : is_empty      ? 1
                                          : end_of_block(builder, action->end_layer);
}

// Gathers the weights of a block's FSDP units in the order of use. direction: 1 in a forward, -1 in a backward pass.
static void acquire_block(struct builder *builder, int64_t place, int32_t direction)
{
    const struct block *block = &builder->blocks[place];
    int32_t             first = block->first_unit + (direction > 0 ? 0 : block->unit_count - 1);
    for (int32_t i = 0; i < block->unit_count; i++) {
        unit_acquire(builder, first + i * direction, direction);
    }
}

static void leave_block(struct builder *builder, int64_t place, bool may_stay)
{
    for (int32_t unit = builder->blocks[place].first_unit; unit < end_of_block(builder, place); unit++) {
        unit_leave(builder, unit, may_stay && stays_gathered(builder, unit));
    }
}

// Appends ops of a forward action up to the next expert all-to-all. Returns whether the action is complete.
static bool advance_forward(struct builder *builder, struct progress *progress)
{
    const struct action *action = &progress->action;
    if (!progress->has_begun) {
        progress->stream = (struct residual_stream){.x = progress->received, .branch = -1};
        progress->place  = action->is_first ? 0 : action->first_layer + 1;
    }
    for (progress->has_begun = true; progress->place <= action->end_layer; progress->place++, progress->part = 0) {
        if (progress->part == 0) {
            acquire_block(builder, progress->place, 1);
        }
        struct residual_stream out = block_forward(builder, progress->place, progress->stream, progress->part);
        if (++progress->part < block_parts(builder, progress->place)) {
            return false;
        }
        progress->stream = out;
        leave_block(builder, progress->place, true);
    }
    return true;
}

// Reduces the gradients of the head, and of a copy of the embedding table if the stage has one. The gradient of the
// original table is reduced later, in the backward pass of the embedding.
static void end_head_gradients(struct builder *builder)
{
    int32_t table = unit_of_table(builder);
    unit_end_gradients(builder, unit_of_head(builder));
    if (builder->plan->units[table].is_copy) {
        unit_end_gradients(builder, table);
    }
}

// Appends forward and backward pass of the MTP modules. stream: output of the final norm. Returns the gradient of
// stream, or -1 without MTP modules.
static int32_t append_predictions(struct builder *builder, struct residual_stream stream)
{
    int64_t first = block_head(&builder->plan->model) + 1, end = block_places(&builder->plan->model);
    int32_t gradient = -1;
    bool    is_aside = builder->assembly.is_aside;

    builder->assembly.is_aside = false;    // no other action is interleaved with these all-to-alls
    for (int64_t place = first; place < end; place++) {
        if (!builder->blocks[place].is_repeat) {
            acquire_block(builder, place, 1);
        }
        struct residual_stream out = stream;
        for (int part = 0; part < block_parts(builder, place); part++) {
            out = block_forward(builder, place, stream, part);
        }
        stream = out;
    }
    builder->assembly.tag.phase = PHASE_BACKWARD;
    for (int64_t place = end - 1; place >= first; place--) {
        if (place == end - 1 || !builder->blocks[place + 1].is_repeat) {
            block_begin_gradients(builder, place);
        }
        for (int part = 0; part < block_parts(builder, place); part++) {
            gradient = block_backward(builder, place, gradient, part);
        }
        if (!builder->blocks[place].is_repeat) {
            block_end_gradients(builder, place);
            leave_block(builder, place, false);
        }
    }
    builder->assembly.is_aside = is_aside;
    return gradient;
}

static int32_t append_head(struct builder *builder, struct residual_stream stream)
{
    int32_t unit = unit_of_head(builder), table = unit_of_table(builder);

    builder->assembly.tag.phase = PHASE_FORWARD;
    unit_acquire(builder, unit, 0);
    unit_acquire(builder, table, 0);
    unit_begin_gradients(builder, unit);
    unit_begin_gradients(builder, table);
    stream                      = block_forward(builder, block_head(&builder->plan->model), stream, 0);
    int32_t gradient            = append_predictions(builder, stream);
    builder->assembly.tag.phase = PHASE_BACKWARD;
    gradient                    = block_backward(builder, block_head(&builder->plan->model), gradient, 0);
    unit_leave(builder, unit, false);
    unit_leave(builder, table, false);
    if (builder->deferred_count == 0) {
        end_head_gradients(builder);
    }
    return gradient;
}

// Appends the head's deferred weight gradients. They run on the last stage while earlier stages finish their backward
// pass.
static void action_append_deferred(struct builder *builder)
{
    builder->first_unit         = unit_of_table(builder);
    builder->end_unit           = builder->plan->unit_count;
    builder->assembly.tag.phase = PHASE_BACKWARD;
    head_append_deferred(builder);
    builder->assembly.tag.microbatch = (int32_t)builder->plan->train.accumulation - 1;
    end_head_gradients(builder);
    unit_settle_gradients(builder);
}

// Appends the backward pass of the embedding, at the end of the backward pass of the first chunk.
static void end_backward(struct builder *builder, int32_t gradient)
{
    for (int32_t unit = 0; unit < end_of_block(builder, 0); unit++) {
        unit_release(builder, unit);
    }
    if (builder->first_trained_place > 0) {
        return;
    }
    block_begin_gradients(builder, 0);
    block_backward(builder, 0, gradient, 0);
    block_end_gradients(builder, 0);
}

static bool advance_backward(struct builder *builder, struct progress *progress)
{
    const struct action *action = &progress->action;
    if (!progress->has_begun) {
        progress->gradient = action->is_last ? append_head(builder, *progress->end) : progress->received;
        progress->place    = action->end_layer;
    }
    int64_t before =
        action->first_layer > builder->first_trained_place - 1 ? action->first_layer : builder->first_trained_place - 1;
    for (progress->has_begun = true; progress->place > before; progress->place--, progress->part = 0) {
        if (progress->part == 0) {
            acquire_block(builder, progress->place, -1);
            block_begin_gradients(builder, progress->place);
        }
        progress->gradient = block_backward(builder, progress->place, progress->gradient, progress->part);
        if (++progress->part < block_parts(builder, progress->place)) {
            return false;
        }
        block_end_gradients(builder, progress->place);
        leave_block(builder, progress->place, false);
    }
    if (action->is_first) {
        end_backward(builder, progress->gradient);
    }
    if (!builder->delays) {
        unit_settle_gradients(builder);
    }
    return true;
}

// Appends ops of an action up to the next expert all-to-all. Returns whether the action is complete.
static bool action_advance(struct builder *builder, struct progress *progress)
{
    const struct action *action = &progress->action;
    builder->assembly.tag       = action->tag;
    set_units(builder, action);
    if (action->pass == SCHEDULE_BACKWARD) {
        return advance_backward(builder, progress);
    }
    if (!advance_forward(builder, progress)) {
        return false;
    }
    if (action->is_last) {
        *progress->end = progress->stream;
    } else if (progress->stream.branch >= 0) {    // the branch is not read any more, so the sum overwrites it
        assembly_set_part(&builder->assembly, PART_RESIDUAL);
        assembly_cast(&builder->assembly, "residual", progress->stream.x, progress->stream.branch, true);
        progress->stream.x = progress->stream.branch;
    }
    return true;
}

// Appends the actions of this stage's pipeline schedule, with sends and receives between chunks. Without pipeline
// parallelism there is one chunk and no communication.
//
// Two overlapped actions, one forward and one backward, are appended alternately in parts that end at expert
// all-to-alls, so that one action computes during the all-to-all of the other action.
//
// The receive of an action's input can start when the previous action starts. The send of an action's output must end
// before the action after the next one starts. So communication overlaps with a whole action and needs few buffers. A
// pair of overlapped actions counts as one action here.

enum { ACTIONS_ASIDE = 2 };    // number of actions in a pair of overlapped ones

struct replay {
    struct builder            *builder;
    struct schedule_assignment assignment;
    struct residual_stream    *ends;       // [in_flight]: outputs of the model's last chunk, inputs of the head
    int32_t                    sent[2];    // last send of each of the last two actions; -1: none
};

struct schedule_shape plan_schedule(const struct mesh *mesh, const struct train_config *train)
{
    return (struct schedule_shape){.stages       = mesh->size[AXIS_PP],
                                   .chunks       = mesh->vp,
                                   .microbatches = train->accumulation,
                                   .kind         = train->overlap_microbatches != 0 ? SCHEDULE_OVERLAPPED
                                                   : mesh->delays_weights           ? SCHEDULE_ZERO_BUBBLE
                                                                                    : SCHEDULE_1F1B};
}

int64_t pipeline_stage(const struct plan *plan)
{
    return mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_PP);
}

bool pipeline_copies_embedding(const struct plan *plan)
{
    return last_stage_reads_embedding(plan) && plan->mesh.size[AXIS_PP] > 1;
}

static struct action action_of(const struct replay *replay, const struct schedule_action *scheduled)
{
    const struct plan     *plan  = replay->builder->plan;
    int64_t                chunk = scheduled->chunk * plan->mesh.size[AXIS_PP] + pipeline_stage(plan);
    struct schedule_layers held  = schedule_layers(&replay->assignment, chunk);
    return (struct action){.pass        = scheduled->pass,
                           .microbatch  = scheduled->microbatch,
                           .model_chunk = chunk,
                           .first_layer = held.first,
                           .end_layer   = held.first + held.count,
                           .is_first    = chunk == 0,
                           .is_last     = chunk == replay->assignment.chunks - 1,
                           .tag         = {.part       = PART_RESIDUAL,
                                           .phase      = scheduled->pass == SCHEDULE_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD,
                                           .layer      = -1,
                                           .chunk      = (int16_t)(plan->mesh.vp > 1 ? scheduled->chunk : -1),
                                           .microbatch = (int32_t)scheduled->microbatch}};
}

// Returns a send or receive between an action's chunk and the neighbouring chunk `other`. Each boundary between two
// chunks has a channel per direction.
static struct communication communication_of(const struct replay *replay, const struct action *action, int64_t other)
{
    int64_t boundary = action->model_chunk < other ? action->model_chunk : other;
    return (struct communication){.axes    = 1u << AXIS_PP,
                                  .in      = -1,
                                  .out     = -1,
                                  .hold    = -1,
                                  .peer    = (int32_t)(other % replay->builder->plan->mesh.size[AXIS_PP]),
                                  .channel = (int32_t)(boundary * SCHEDULE_PASSES + action->pass)};
}

// Appends the receive of an action's input. Returns its tensor, or -1 if the action receives nothing. The receive
// starts after the compute ops appended so far.
static int32_t append_receive(const struct replay *replay, const struct action *action)
{
    struct builder *builder    = replay->builder;
    bool            is_forward = action->pass == SCHEDULE_FORWARD;
    struct op_tag   tag        = builder->assembly.tag;
    if (is_forward ? action->is_first : action->is_last || action->end_layer < builder->first_trained_place) {
        return -1;
    }
    struct communication communication =
        communication_of(replay, action, is_forward ? action->model_chunk - 1 : action->model_chunk + 1);
    builder->assembly.tag = action->tag;
    communication.kind    = OP_RECEIVE;
    communication.role    = is_forward ? "residual receive" : "residual gradient receive";
    communication.stream  = STREAM_PIPELINE_RECEIVE;
    communication.hold    = builder->assembly.last_compute;
    communication.out     = assembly_activation(&builder->assembly, is_forward ? "residual" : "residual gradient",
                                                DIMS(builder->shard_tokens, builder->plan->model.hidden));
    collect(builder, &communication);
    builder->assembly.tag = tag;
    return communication.out;
}

// Appends the send of an action's output. Returns the op, or -1 if there is nothing to send.
static int32_t append_send(const struct replay *replay, const struct action *action, int32_t tensor)
{
    bool is_forward = action->pass == SCHEDULE_FORWARD;
    bool ends       = action->first_layer < replay->builder->first_trained_place;
    if (is_forward ? action->is_last : action->is_first || ends) {
        return -1;
    }
    struct communication communication =
        communication_of(replay, action, is_forward ? action->model_chunk + 1 : action->model_chunk - 1);
    communication.kind   = OP_SEND;
    communication.role   = is_forward ? "residual send" : "residual gradient send";
    communication.stream = STREAM_PIPELINE_SEND;
    communication.in     = tensor;
    return collect(replay->builder, &communication);
}

// Appends the weight gradients of a microbatch that the zero-bubble schedule (ZB-H1) moved out of its backward pass,
// and reduces the gradients of the chunk. This needs no send or receive buffers, so it does not count as a pipeline
// action.
static void append_weights(const struct replay *replay, const struct schedule_action *scheduled)
{
    struct builder *builder = replay->builder;
    struct action   action  = action_of(replay, scheduled);
    set_units(builder, &action);
    builder->assembly.tag = action.tag;
    linear_append_delayed(builder);
    builder->assembly.tag = action.tag;
    unit_settle_gradients(builder);
}

// Appends one action, or the parts of two overlapped actions alternately. The backward action is first, so that its
// all-to-alls start first. The sends follow in the order of the schedule, because peers receive in this order.
static void append_actions(struct replay *replay, struct progress *started, int count)
{
    struct assembly *assembly                 = &replay->builder->assembly;
    bool             has_ended[ACTIONS_ASIDE] = {false};
    if (replay->sent[1] >= 0) {
        assembly_hold_compute(assembly, replay->sent[1]);
    }
    replay->sent[1]         = replay->sent[0];
    replay->sent[0]         = -1;
    replay->builder->delays = replay->builder->plan->mesh.delays_weights;
    for (int left = count, i = count - 1; left > 0; i = (i + 1) % count) {
        assembly->is_aside = left > 1;
        if (!has_ended[i]) {
            has_ended[i] = action_advance(replay->builder, &started[i]);
            left -= has_ended[i];
        }
    }
    for (int i = 0; i < count; i++) {
        bool is_back    = started[i].action.pass == SCHEDULE_BACKWARD;
        assembly->tag   = started[i].action.tag;
        int32_t sent    = append_send(replay, &started[i].action, is_back ? started[i].gradient : started[i].stream.x);
        replay->sent[0] = sent >= 0 ? sent : replay->sent[0];
    }
    replay->builder->delays = false;
}

// Prepares the next action, or the next two if they overlap, and appends their receives. Returns their number, or 0 at
// the end of the schedule.
static int begin_actions(const struct replay *replay, const struct schedule_action *actions, int64_t left,
                         struct progress started[ACTIONS_ASIDE])
{
    int count = left > 0 && actions[0].is_beside ? ACTIONS_ASIDE : left > 0;
    for (int i = 0; i < count; i++) {
        started[i]          = (struct progress){.action = action_of(replay, &actions[i])};
        started[i].end      = &replay->ends[actions[i].microbatch % replay->builder->in_flight];
        started[i].received = append_receive(replay, &started[i].action);
    }
    return count;
}

// Numbers the blocks of this rank, and allocates their tables of tensors, with an entry per microbatch in flight.
static void number_blocks(struct builder *builder, const struct schedule_assignment *assignment)
{
    const struct mesh *mesh = &builder->plan->mesh;
    for (int64_t chunk = 0; chunk < mesh->vp; chunk++) {
        int64_t                place = chunk * mesh->size[AXIS_PP] + pipeline_stage(builder->plan);
        struct schedule_layers held  = schedule_layers(assignment, place);
        int64_t                first = place == 0 ? 0 : held.first + 1;
        int64_t                end =
            place == assignment->chunks - 1 ? block_places(&builder->plan->model) : held.first + held.count + 1;
        for (int64_t block = first; block < end; block++) {
            builder->blocks[block].own      = builder->own_blocks++;
            builder->blocks[block].in_chunk = block - held.first - 1;
        }
    }
    size_t values   = (size_t)(builder->own_blocks * builder->in_flight);
    builder->values = arena_allocate(&builder->scratch, values * sizeof(*builder->values));
    size_t weights  = (size_t)builder->plan->weight_count;
    size_t modules  = (size_t)(builder->plan->model.predicted_tokens > 1 ? builder->plan->model.predicted_tokens : 1);
    builder->adapted =
        arena_allocate(&builder->scratch, modules * weights * (size_t)builder->in_flight * sizeof(*builder->adapted));
    builder->adapter_inputs = arena_allocate(&builder->scratch, weights * sizeof(*builder->adapter_inputs));
    for (size_t weight = 0; weight < weights; weight++) {
        builder->adapter_inputs[weight].output_gradient = -1;
    }
}

// Returns the index of the next forward or backward action. Skips the separate weight-gradient actions of a zero-bubble
// schedule, which need no sends or receives.
static int64_t skip_weights(const struct schedule_action *actions, int64_t count, int64_t at)
{
    while (at < count && actions[at].pass == SCHEDULE_WEIGHTS) {
        at++;
    }
    return at;
}

void pipeline_append(struct builder *builder)
{
    struct plan            *plan    = builder->plan;
    struct schedule_shape   shape   = plan_schedule(&plan->mesh, &plan->train);
    int64_t                 count   = schedule_actions(&shape);
    struct schedule_action *actions = memory_allocate((size_t)count * sizeof(*actions));
    schedule_build(&shape, pipeline_stage(plan), actions);

    builder->in_flight   = schedule_in_flight(&shape, actions);
    struct replay replay = {.builder    = builder,
                            .assignment = plan->assignment,
                            .ends       = memory_allocate((size_t)builder->in_flight * sizeof(*replay.ends)),
                            .sent       = {-1, -1}};
    number_blocks(builder, &replay.assignment);
    builder->deferred = memory_allocate((size_t)plan->train.accumulation * sizeof(*builder->deferred));

    struct progress now[ACTIONS_ASIDE], next[ACTIONS_ASIDE];
    int             now_count, next_count = begin_actions(&replay, actions, count, next);
    for (int64_t i = 0; next_count > 0;) {
        memcpy(now, next, sizeof(now));
        now_count = next_count;
        i += now_count;
        int64_t following = skip_weights(actions, count, i);
        next_count        = begin_actions(&replay, actions + following, count - following, next);
        append_actions(&replay, now, now_count);
        for (; i < following; i++) {
            append_weights(&replay, &actions[i]);
        }
    }
    free(builder->delayed);
    if (builder->deferred_count > 0) {
        action_append_deferred(builder);
    }
    free(builder->deferred);
    free(replay.ends);
    free(actions);
}
