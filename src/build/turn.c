// SPDX-License-Identifier: MIT
// Appends the blocks of a pipeline action in order; acquires their weights and reduces their gradients.
#include "turn.h"

#include "gswbench/layer_kind.h"
#include "gswbench/unit_ops.h"
#include "block.h"

// Whether a unit's weights stay gathered from forward to backward pass.
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

bool turn_ends_with_embedding(const struct plan *plan)
{
    return plan->model.tied || plan->model.predicted_tokens > 0;
}

// The unit with the output table: the embedding's, if the last stage reads that, else the head's.
static int32_t unit_of_table(const struct builder *builder)
{
    return turn_ends_with_embedding(builder->plan) ? builder->blocks[0].first_unit : unit_of_head(builder);
}

static int32_t end_of_block(const struct builder *builder, int64_t place)
{
    return builder->blocks[place].first_unit + builder->blocks[place].unit_count;
}

// The range of units that the following ops may gather and reduce.
static void set_units(struct builder *builder, const struct turn *turn)
{
    bool is_empty       = turn->first_layer == turn->end_layer;    // no layers, only embedding or head
    builder->first_unit = turn->is_first ? 0
                          : is_empty     ? unit_of_table(builder)
                                         : builder->blocks[turn->first_layer + 1].first_unit;
    builder->end_unit   = turn->is_last ? builder->plan->unit_count
                          : is_empty    ? 1
                                        : end_of_block(builder, turn->end_layer);
}

// Acquires the units of a block, in the order of the direction.
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

// Appends ops of a forward action up to the next expert all-to-all. Returns whether the action is complete.
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

// Reduces gradients of the head's unit and of a copy of the embedding. The original is reduced in its own backward
// pass.
static void end_head_gradients(struct builder *builder)
{
    int32_t table = unit_of_table(builder);
    unit_end_gradients(builder, unit_of_head(builder));
    if (builder->plan->units[table].is_copy) {
        unit_end_gradients(builder, table);
    }
}

// Forward and backward pass of the MTP modules. stream: normalised output of the head. Returns its gradient; -1: no MTP
// modules.
static int32_t append_predictions(struct builder *builder, struct stream stream)
{
    int64_t first = place_of_head(builder) + 1, end = block_places(&builder->plan->model);
    int32_t gradient = -1;
    bool    is_aside = builder->assembly.is_aside;

    builder->assembly.is_aside = false;    // no other action is interleaved with these all-to-alls
    for (int64_t place = first; place < end; place++) {
        acquire_block(builder, place, 1);
        struct stream out = stream;
        for (int part = 0; part < block_parts(builder, place); part++) {
            out = block_forward(builder, place, stream, part);
        }
        stream = out;
    }
    builder->assembly.tag.phase = PHASE_BACKWARD;
    for (int64_t place = end - 1; place >= first; place--) {
        block_begin_gradients(builder, place);
        for (int part = 0; part < block_parts(builder, place); part++) {
            gradient = block_backward(builder, place, gradient, part);
        }
        block_end_gradients(builder, place);
        leave_block(builder, place, false);
    }
    builder->assembly.is_aside = is_aside;
    return gradient;
}

static int32_t append_head(struct builder *builder, struct stream stream)
{
    int32_t unit = unit_of_head(builder), table = unit_of_table(builder);

    builder->assembly.tag.phase = PHASE_FORWARD;
    unit_acquire(builder, unit, 0);
    unit_acquire(builder, table, 0);
    unit_begin_gradients(builder, unit);
    unit_begin_gradients(builder, table);
    stream                      = block_forward(builder, place_of_head(builder), stream, 0);
    int32_t gradient            = append_predictions(builder, stream);
    builder->assembly.tag.phase = PHASE_BACKWARD;
    gradient                    = block_backward(builder, place_of_head(builder), gradient, 0);
    unit_leave(builder, unit, false);
    unit_leave(builder, table, false);
    if (builder->deferred_count == 0) {
        end_head_gradients(builder);
    }
    return gradient;
}

void turn_append_deferred(struct builder *builder)
{
    builder->first_unit         = unit_of_table(builder);
    builder->end_unit           = builder->plan->unit_count;
    builder->assembly.tag.phase = PHASE_BACKWARD;
    head_append_deferred(builder);
    builder->assembly.tag.microbatch = (int32_t)builder->plan->train.accumulation - 1;
    end_head_gradients(builder);
    unit_settle_gradients(builder);
}

static void end_backward(struct builder *builder, int32_t gradient)
{
    for (int32_t unit = 0; unit < end_of_block(builder, 0); unit++) {
        unit_release(builder, unit);
    }
    block_begin_gradients(builder, 0);
    block_backward(builder, 0, gradient, 0);
    block_end_gradients(builder, 0);
}

static bool walk_backward(struct builder *builder, struct walk *walk)
{
    const struct turn *turn = &walk->turn;
    if (!walk->has_begun) {
        walk->gradient = turn->is_last ? append_head(builder, *walk->end) : walk->received;
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

bool turn_advance(struct builder *builder, struct walk *walk)
{
    const struct turn *turn = &walk->turn;
    builder->assembly.tag   = turn->tag;
    set_units(builder, turn);
    if (turn->action == SCHEDULE_BACKWARD) {
        return walk_backward(builder, walk);
    }
    if (!walk_forward(builder, walk)) {
        return false;
    }
    if (turn->is_last) {
        *walk->end = walk->stream;
    } else if (walk->stream.branch >= 0) {    // the branch is not read any more, so the sum overwrites it
        assembly_set_part(&builder->assembly, PART_RESIDUAL);
        assembly_cast(&builder->assembly, "residual", walk->stream.x, walk->stream.branch, true);
        walk->stream.x = walk->stream.branch;
    }
    return true;
}
