// SPDX-License-Identifier: MIT
// Replays the pipeline's schedule: this stage's chunks forward and backward, microbatch by microbatch, with what they
// receive from and send to the chunks before and after them. Without a pipeline there is one chunk, and no transfer.
//
// Turns that go side by side, one forward and one backward, are appended in parts that end where tokens travel to
// experts or back: while those of one are on their way, the other computes.
//
// A turn's receive may start when the turn before it does, and its send has ended before the turn after the next one
// starts: transfers hide behind a whole turn, and only a few of their buffers exist at once. Turns that go side by side
// count as one.
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "head.h"
#include "pipeline.h"
#include "units.h"

enum { TURNS_ASIDE = 2 };    // that go side by side

struct replay {
    struct builder      *builder;
    struct schedule_deal deal;
    struct stream       *ends;       // [in_flight]: what the model's last chunk leaves to the head
    int32_t              sent[2];    // the last sends of the latest two turns; -1: none
};

// A turn and what its chunk is: its place in the model, and its blocks.
struct turn {
    enum schedule_action action;
    int64_t              microbatch, place, first_layer, end_layer;
    bool                 is_first, is_last;
    struct op_tag        tag;
};

// How far the ops of a turn are appended.
struct walk {
    struct turn   turn;
    int32_t       received;
    bool          has_begun;
    int64_t       place;    // of the block that is next, and its part
    int           part;
    struct stream stream;      // forward: at the block's entry
    int32_t       gradient;    // backward: what the part before returned
};

struct schedule_deal pipeline_deal(const struct plan *plan)
{
    return (struct schedule_deal){.layers           = plan->model.layers,
                                  .chunks           = plan->mesh.size[AXIS_PP] * plan->mesh.vp,
                                  .counts_embedding = plan->counts_embedding};
}

struct schedule_shape pipeline_shape(const struct plan *plan)
{
    return (struct schedule_shape){plan->mesh.size[AXIS_PP], plan->mesh.vp, plan->train.accumulation,
                                   plan->train.overlap_microbatches != 0};
}

int64_t pipeline_stage(const struct plan *plan)
{
    return mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_PP);
}

// Whether a unit's weights stay from its forward to its backward pass.
static bool stays_whole(const struct builder *builder, int32_t unit)
{
    return builder->reshard == RESHARD_NEVER ||
           (builder->reshard == RESHARD_EXCEPT_LAST &&
            builder->plan->tensors[builder->plan->units[unit].weight].layer == builder->plan->model.layers - 1);
}

static int64_t place_of_head(const struct builder *builder)
{
    return builder->plan->model.layers + 1;
}

static int32_t unit_of_head(const struct builder *builder)
{
    return builder->blocks[place_of_head(builder)].first_unit;
}

// The unit of the table that the head multiplies by: its own, or the embedding's.
static int32_t unit_of_table(const struct builder *builder)
{
    return builder->plan->weights[head_table(builder)].unit;
}

static struct turn turn_of(const struct replay *replay, const struct schedule_turn *scheduled)
{
    const struct plan     *plan  = replay->builder->plan;
    int64_t                place = scheduled->chunk * plan->mesh.size[AXIS_PP] + pipeline_stage(plan);
    struct schedule_layers held  = schedule_layers(&replay->deal, place);
    return (struct turn){.action      = scheduled->action,
                         .microbatch  = scheduled->microbatch,
                         .place       = place,
                         .first_layer = held.first,
                         .end_layer   = held.first + held.count,
                         .is_first    = place == 0,
                         .is_last     = place == replay->deal.chunks - 1,
                         .tag = {.phase      = scheduled->action == SCHEDULE_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD,
                                 .layer      = -1,
                                 .chunk      = (int16_t)(plan->mesh.vp > 1 ? scheduled->chunk : -1),
                                 .microbatch = (int32_t)scheduled->microbatch}};
}

static int32_t end_of_block(const struct builder *builder, int64_t place)
{
    return builder->blocks[place].first_unit + builder->blocks[place].unit_count;
}

// Which units the ops that follow may gather and reduce.
static void set_units(struct builder *builder, const struct turn *turn)
{
    bool is_empty       = turn->first_layer == turn->end_layer;    // but for the embedding or the head
    builder->first_unit = turn->is_first ? 0
                          : is_empty     ? unit_of_table(builder)
                                         : builder->blocks[turn->first_layer + 1].first_unit;
    builder->end_unit   = turn->is_last ? unit_of_head(builder) + 1
                          : is_empty    ? 1
                                        : end_of_block(builder, turn->end_layer);
}

// The units of a block, in the order in which that direction needs them.
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
        unit_leave(builder, unit, may_stay && stays_whole(builder, unit));
    }
}

// Appends the ops of a turn as far as tokens travel; returns whether these were the last.
static bool walk_forward(struct builder *builder, struct walk *walk)
{
    const struct turn *turn = &walk->turn;
    if (!walk->has_begun) {
        walk->stream = (struct stream){walk->received, -1};
        walk->place  = turn->is_first ? 0 : turn->first_layer + 1;
    }
    for (walk->has_begun = true; walk->place <= turn->end_layer; walk->place++, walk->part = 0) {
        if (walk->part == 0) {
            acquire_block(builder, walk->place, 1);
        }
        struct stream out = block_forward(builder, walk->place, walk->stream, walk->part);
        if (++walk->part < block_parts(builder, walk->place)) {
            return false;
        }
        walk->stream = out;
        leave_block(builder, walk->place, true);
    }
    return true;
}

// Those of the head's own unit, and of a copy of the table: the embedding ends its own.
static void end_head_gradients(struct builder *builder)
{
    int32_t table = unit_of_table(builder);
    unit_end_gradients(builder, unit_of_head(builder));
    if (builder->plan->units[table].is_copy) {
        unit_end_gradients(builder, table);
    }
}

static int32_t append_head(struct builder *builder, struct stream stream)
{
    int32_t unit = unit_of_head(builder), table = unit_of_table(builder);

    builder->assembly.tag.phase = PHASE_FORWARD;
    unit_acquire(builder, unit, 0);
    unit_acquire(builder, table, 0);
    unit_begin_gradients(builder, unit);
    unit_begin_gradients(builder, table);
    block_forward(builder, place_of_head(builder), stream, 0);
    builder->assembly.tag.phase = PHASE_BACKWARD;
    int32_t gradient            = block_backward(builder, place_of_head(builder), -1, 0);
    unit_leave(builder, unit, false);
    unit_leave(builder, table, false);
    if (builder->deferred_count == 0) {
        end_head_gradients(builder);
    }
    return gradient;
}

// The head's gradients that were left until the stages before this one have the rest of the backward pass to do.
static void append_deferred(struct builder *builder)
{
    builder->first_unit         = unit_of_table(builder);
    builder->end_unit           = unit_of_head(builder) + 1;
    builder->assembly.tag.phase = PHASE_BACKWARD;
    head_append_deferred(builder);
    builder->assembly.tag.microbatch = (int32_t)builder->plan->train.accumulation - 1;
    end_head_gradients(builder);
    unit_settle_gradients(builder);
}

// At the model's beginning.
static void end_backward(struct builder *builder, int32_t gradient)
{
    for (int32_t unit = 0; unit < end_of_block(builder, 0); unit++) {
        unit_release(builder, unit);
    }
    block_begin_gradients(builder, 0);
    block_backward(builder, 0, gradient, 0);
    block_end_gradients(builder, 0);
}

static bool walk_backward(struct builder *builder, struct walk *walk, struct stream end)
{
    const struct turn *turn = &walk->turn;
    if (!walk->has_begun) {
        walk->gradient = turn->is_last ? append_head(builder, end) : walk->received;
        walk->place    = turn->end_layer;
    }
    for (walk->has_begun = true; walk->place > turn->first_layer; walk->place--, walk->part = 0) {
        if (walk->part == 0) {
            acquire_block(builder, walk->place, -1);
            block_begin_gradients(builder, walk->place);
        }
        walk->gradient = block_backward(builder, walk->place, walk->gradient, walk->part);
        if (++walk->part < block_parts(builder, walk->place)) {
            return false;
        }
        block_end_gradients(builder, walk->place);
        leave_block(builder, walk->place, false);
    }
    if (turn->is_first) {
        end_backward(builder, walk->gradient);
    }
    unit_settle_gradients(builder);
    return true;
}

// Between a turn's chunk and another; each boundary between chunks has a channel for each direction.
static struct transfer transfer_of(const struct replay *replay, const struct turn *turn, int64_t other)
{
    int64_t boundary = turn->place < other ? turn->place : other;
    return (struct transfer){.axes    = 1u << AXIS_PP,
                             .in      = -1,
                             .out     = -1,
                             .hold    = -1,
                             .peer    = (int32_t)(other % replay->builder->plan->mesh.size[AXIS_PP]),
                             .channel = (int32_t)(boundary * SCHEDULE_ACTIONS + turn->action)};
}

// What a turn needs of another chunk, in a new tensor; -1: nothing. It starts when the ops appended so far have ended.
static int32_t append_receive(const struct replay *replay, const struct turn *turn)
{
    struct builder *builder    = replay->builder;
    bool            is_forward = turn->action == SCHEDULE_FORWARD;
    struct op_tag   tag        = builder->assembly.tag;
    if (is_forward ? turn->is_first : turn->is_last) {
        return -1;
    }
    struct transfer transfer = transfer_of(replay, turn, is_forward ? turn->place - 1 : turn->place + 1);
    builder->assembly.tag    = turn->tag;
    transfer.kind            = OP_RECEIVE;
    transfer.role            = is_forward ? "residual receive" : "residual gradient receive";
    transfer.lane            = LANE_PIPELINE_RECEIVE;
    transfer.hold            = builder->assembly.last_compute;
    transfer.out             = assembly_activation(&builder->assembly, is_forward ? "residual" : "residual gradient",
                                                   DIMS(builder->shard_tokens, builder->plan->model.hidden));
    assembly_transfer(&builder->assembly, &transfer);
    builder->assembly.tag = tag;
    return transfer.out;
}

// What a turn leaves to another chunk. Returns the op; -1: there is none.
static int32_t append_send(const struct replay *replay, const struct turn *turn, int32_t tensor)
{
    bool is_forward = turn->action == SCHEDULE_FORWARD;
    if (is_forward ? turn->is_last : turn->is_first) {
        return -1;
    }
    struct transfer transfer = transfer_of(replay, turn, is_forward ? turn->place + 1 : turn->place - 1);
    transfer.kind            = OP_SEND;
    transfer.role            = is_forward ? "residual send" : "residual gradient send";
    transfer.lane            = LANE_PIPELINE_SEND;
    transfer.in              = tensor;
    return assembly_transfer(&replay->builder->assembly, &transfer);
}

// Appends a turn's ops as far as tokens travel, and what it sends when it has ended; returns whether it has.
static bool advance(struct replay *replay, struct walk *walk)
{
    struct builder    *builder = replay->builder;
    const struct turn *turn    = &walk->turn;
    struct stream     *end     = &replay->ends[turn->microbatch % builder->in_flight];
    bool               is_back = turn->action == SCHEDULE_BACKWARD;
    builder->assembly.tag      = turn->tag;
    set_units(builder, turn);
    if (!(is_back ? walk_backward(builder, walk, *end) : walk_forward(builder, walk))) {
        return false;
    }
    if (!is_back && turn->is_last) {
        *end = walk->stream;
    } else if (!is_back && walk->stream.branch >= 0) {    // nobody here reads it any more: the sum takes its place
        assembly_cast(&builder->assembly, "residual", walk->stream.x, walk->stream.branch, true);
        walk->stream.x = walk->stream.branch;
    }
    int32_t sent    = append_send(replay, turn, is_back ? walk->gradient : walk->stream.x);
    replay->sent[0] = sent >= 0 ? sent : replay->sent[0];
    return true;
}

// Turns that go side by side, or (count is 1) one alone. Of two, the gradients travel first.
static void append_turns(struct replay *replay, struct walk *walks, int count)
{
    bool has_ended[TURNS_ASIDE] = {false};
    if (replay->sent[1] >= 0) {
        assembly_hold_compute(&replay->builder->assembly, replay->sent[1]);
    }
    replay->sent[1] = replay->sent[0];
    replay->sent[0] = -1;
    for (int left = count, i = count - 1; left > 0; i = (i + 1) % count) {
        replay->builder->assembly.is_aside = left > 1;
        if (!has_ended[i]) {
            has_ended[i] = advance(replay, &walks[i]);
            left -= has_ended[i];
        }
    }
}

// The next turns, with what they receive. Returns how many there are.
static int begin_turns(const struct replay *replay, const struct schedule_turn *turns, int64_t left,
                       struct walk walks[TURNS_ASIDE])
{
    int count = left > 0 && turns[0].is_beside ? TURNS_ASIDE : left > 0;
    for (int i = 0; i < count; i++) {
        walks[i]          = (struct walk){.turn = turn_of(replay, &turns[i])};
        walks[i].received = append_receive(replay, &walks[i].turn);
    }
    return count;
}

// Room for the values of the blocks that are here, the ends of the model where they are.
static void make_room(struct builder *builder, const struct schedule_deal *deal)
{
    const struct mesh *mesh = &builder->plan->mesh;
    for (int64_t chunk = 0; chunk < mesh->vp; chunk++) {
        int64_t                place = chunk * mesh->size[AXIS_PP] + pipeline_stage(builder->plan);
        struct schedule_layers held  = schedule_layers(deal, place);
        int64_t                first = place == 0 ? 0 : held.first + 1;
        int64_t                end   = held.first + held.count + (place == deal->chunks - 1 ? 2 : 1);
        for (int64_t block = first; block < end; block++) {
            builder->blocks[block].own = builder->own_blocks++;
        }
    }
    size_t values   = (size_t)(builder->own_blocks * builder->in_flight);
    builder->values = arena_allocate(&builder->scratch, values * sizeof(*builder->values));
}

void pipeline_append(struct builder *builder)
{
    struct plan          *plan  = builder->plan;
    struct schedule_shape shape = pipeline_shape(plan);
    int64_t               count = schedule_turns(&shape);
    struct schedule_turn *turns = memory_allocate((size_t)count * sizeof(*turns));
    schedule_build(&shape, pipeline_stage(plan), turns);

    builder->in_flight   = schedule_in_flight(&shape, turns);
    struct replay replay = {.builder = builder,
                            .deal    = pipeline_deal(plan),
                            .ends    = memory_allocate((size_t)builder->in_flight * sizeof(*replay.ends)),
                            .sent    = {-1, -1}};
    make_room(builder, &replay.deal);
    builder->deferred = memory_allocate((size_t)plan->train.accumulation * sizeof(*builder->deferred));

    struct walk now[TURNS_ASIDE], next[TURNS_ASIDE];
    int         now_count, next_count = begin_turns(&replay, turns, count, next);
    for (int64_t i = 0; next_count > 0; i += now_count) {
        memcpy(now, next, sizeof(now));
        now_count  = next_count;
        next_count = begin_turns(&replay, turns + i + now_count, count - i - now_count, next);
        append_turns(&replay, now, now_count);
    }
    if (builder->deferred_count > 0) {
        append_deferred(builder);
    }
    free(builder->deferred);
    free(replay.ends);
    free(turns);
}
