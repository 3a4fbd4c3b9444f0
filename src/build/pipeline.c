// SPDX-License-Identifier: MIT
// Appends the actions of this stage's pipeline schedule, with sends and receives between chunks. Without pipeline
// parallelism there is one chunk and no communication.
//
// Overlapped actions, one forward and one backward, are appended alternately in parts that end at expert all-to-alls,
// so that one computes during the all-to-all of the other.
//
// A receive can start with the previous action, and a send must end before the action after the next. So communication
// overlaps with a whole action and needs few buffers. A pair of overlapped actions counts as one.
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "turn.h"

enum { TURNS_ASIDE = 2 };    // in a pair of overlapped actions

struct replay {
    struct builder      *builder;
    struct schedule_deal deal;
    struct stream       *ends;       // [in_flight]: outputs of the model's last chunk, inputs of the head
    int32_t              sent[2];    // last send of each of the last two actions; -1: none
};

struct schedule_shape pipeline_shape(const struct plan *plan)
{
    return (struct schedule_shape){plan->mesh.size[AXIS_PP], plan->mesh.vp, plan->train.accumulation,
                                   plan->train.overlap_microbatches != 0};
}

int64_t pipeline_stage(const struct plan *plan)
{
    return mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_PP);
}

bool pipeline_copies_embedding(const struct plan *plan)
{
    return turn_ends_with_embedding(plan) && plan->mesh.size[AXIS_PP] > 1;
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
                         .tag         = {.part       = PART_RESIDUAL,
                                         .phase      = scheduled->action == SCHEDULE_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD,
                                         .layer      = -1,
                                         .chunk      = (int16_t)(plan->mesh.vp > 1 ? scheduled->chunk : -1),
                                         .microbatch = (int32_t)scheduled->microbatch}};
}

// A send or receive between an action's chunk and another. Each boundary between chunks has a channel per direction.
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

// Receives an action's input into a new tensor; -1: it needs none. The receive starts after the compute ops appended so
// far.
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

// Sends an action's output. Returns the op; -1: nothing to send.
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

// Appends one action, or two overlapped ones. Backward goes first, so that its all-to-alls start first. Sends are in
// schedule order, the order in which peers receive.
static void append_turns(struct replay *replay, struct walk *walks, int count)
{
    struct assembly *assembly               = &replay->builder->assembly;
    bool             has_ended[TURNS_ASIDE] = {false};
    if (replay->sent[1] >= 0) {
        assembly_hold_compute(assembly, replay->sent[1]);
    }
    replay->sent[1] = replay->sent[0];
    replay->sent[0] = -1;
    for (int left = count, i = count - 1; left > 0; i = (i + 1) % count) {
        assembly->is_aside = left > 1;
        if (!has_ended[i]) {
            has_ended[i] = turn_advance(replay->builder, &walks[i]);
            left -= has_ended[i];
        }
    }
    for (int i = 0; i < count; i++) {
        bool is_back    = walks[i].turn.action == SCHEDULE_BACKWARD;
        assembly->tag   = walks[i].turn.tag;
        int32_t sent    = append_send(replay, &walks[i].turn, is_back ? walks[i].gradient : walks[i].stream.x);
        replay->sent[0] = sent >= 0 ? sent : replay->sent[0];
    }
}

// The next one or two actions, with their receives. Returns their number; 0: none left.
static int begin_turns(const struct replay *replay, const struct schedule_turn *turns, int64_t left,
                       struct walk walks[TURNS_ASIDE])
{
    int count = left > 0 && turns[0].is_beside ? TURNS_ASIDE : left > 0;
    for (int i = 0; i < count; i++) {
        walks[i]          = (struct walk){.turn = turn_of(replay, &turns[i])};
        walks[i].end      = &replay->ends[turns[i].microbatch % replay->builder->in_flight];
        walks[i].received = append_receive(replay, &walks[i].turn);
    }
    return count;
}

// Allocates values for the blocks of this rank.
static void make_room(struct builder *builder, const struct schedule_deal *deal)
{
    const struct mesh *mesh = &builder->plan->mesh;
    for (int64_t chunk = 0; chunk < mesh->vp; chunk++) {
        int64_t                place = chunk * mesh->size[AXIS_PP] + pipeline_stage(builder->plan);
        struct schedule_layers held  = schedule_layers(deal, place);
        int64_t                first = place == 0 ? 0 : held.first + 1;
        int64_t end = place == deal->chunks - 1 ? block_places(&builder->plan->model) : held.first + held.count + 1;
        for (int64_t block = first; block < end; block++) {
            builder->blocks[block].own      = builder->own_blocks++;
            builder->blocks[block].in_chunk = block - held.first - 1;
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
                            .deal    = plan->deal,
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
        turn_append_deferred(builder);
    }
    free(builder->deferred);
    free(replay.ends);
    free(turns);
}
