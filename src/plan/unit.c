// SPDX-License-Identifier: MIT
// Where a unit's weights and gradients are while microbatches pass: always here, or (FSDP) gathered before use and
// reduced after it, with a bounded number of units in flight.
#include "internal.h"

int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices)
{
    int64_t grain = (plan->precision.has_fp8_weights ? 16 : 8) * slices;
    return (elements + grain - 1) / grain * grain;
}

static bool is_sharded(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].shard_axes) > 1;
}

static bool has_replicas(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].replica_axes) > 1;
}

static struct plan_slice slice_of(const struct plan *plan, uint32_t axes, int64_t elements)
{
    int64_t each = elements / mesh_group_size(&plan->mesh, axes);
    return (struct plan_slice){mesh_group_index(&plan->mesh, plan->rank, axes) * each, each};
}

static bool updates_slice(const struct plan_unit *unit)
{
    return unit->updated.elements < unit->kept.elements;
}

int64_t unit_place_of_experts(const struct plan *plan, int64_t layer)
{
    return plan->model.layers + 2 + layer;
}

int64_t unit_place_of_linears(const struct plan *plan, int64_t layer)
{
    return unit_place_of_experts(plan, plan->model.experts > 0 ? plan->model.layers : 0) + layer;
}

int64_t unit_places(const struct plan *plan)
{
    return unit_place_of_linears(plan, plan->precision.has_fp8_weights ? plan->model.layers : 0);
}

// The layer of the unit at a place; -1: none.
static int64_t layer_of_place(const struct plan *plan, int64_t place)
{
    int64_t apart = place - unit_place_of_experts(plan, 0);
    return apart >= 0 ? apart % plan->model.layers : place <= plan->model.layers ? place - 1 : -1;
}

void unit_create(struct builder *builder, int64_t place, int64_t elements)
{
    struct plan            *plan      = builder->plan;
    const struct precision *precision = &plan->precision;
    int32_t                 index     = plan->unit_count++;
    struct plan_unit       *unit      = &plan->units[index];

    bool is_apart     = place >= unit_place_of_experts(plan, 0);
    bool is_experts   = is_apart && place < unit_place_of_linears(plan, 0);
    bool is_fp8       = is_apart && precision->has_fp8_weights;
    *unit             = (struct plan_unit){.place        = place,
                                           .is_experts   = is_experts,
                                           .is_fp8       = is_fp8,
                                           .shard_axes   = mesh_shard_axes(&plan->mesh, is_experts),
                                           .replica_axes = mesh_replica_axes(&plan->mesh, is_experts),
                                           .first_weight = plan->weight_count};
    unit->update_axes = plan->is_zero ? unit->replica_axes : unit->shard_axes;
    unit->elements    = unit_align(plan, elements, mesh_group_size(&plan->mesh, unit->shard_axes | unit->replica_axes));
    unit->kept        = slice_of(plan, unit->shard_axes, unit->elements);
    unit->updated     = slice_of(plan, unit->update_axes, unit->elements);

    bool is_whole          = !is_sharded(builder, index) && (!builder->gathers_forward || !updates_slice(unit));
    builder->states[index] = (struct unit_state){.is_whole = is_whole, .whole_gradient = -1, .reduced = -1};

    const int64_t *kept = DIMS(unit->kept.elements), *updated = DIMS(unit->updated.elements);
    builder->tag.layer = (int16_t)layer_of_place(plan, place);
    unit->weight       = builder_tensor(builder, "weights", STORAGE_WEIGHT,
                                  is_fp8 ? precision->fp8_format[FP8_WEIGHT] : precision->weight, kept);
    unit->gradient     = builder_tensor(builder, "gradients", STORAGE_GRADIENT, precision->gradient, kept);
    unit->master =
        precision->has_master ? builder_tensor(builder, "master weights", STORAGE_OPTIMIZER, DTYPE_F32, updated) : -1;
    unit->first_moment  = builder_tensor(builder, "first moments", STORAGE_OPTIMIZER, precision->moment, updated);
    unit->second_moment = builder_tensor(builder, "second moments", STORAGE_OPTIMIZER, precision->moment, updated);
    builder->tag.layer  = -1;
}

// Tags what is appended next as this unit's, in that phase; returns the tag to restore.
static struct op_tag enter(struct builder *builder, int32_t unit, enum phase phase)
{
    struct op_tag tag  = builder->tag;
    builder->tag.phase = (int16_t)phase;
    builder->tag.layer = builder->plan->tensors[builder->plan->units[unit].weight].layer;
    return tag;
}

// A weight as a part of the tensor that holds its unit's whole range.
static int32_t part_of_whole(struct builder *builder, const struct weight *weight, const char *name, int32_t whole)
{
    return builder_part(builder, name, whole, weight->first,
                        weight->part[0].is_vector ? DIMS(weight->columns) : DIMS(weight->rows, weight->columns));
}

void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *pointed = &builder->plan->units[unit];
    for (int32_t w = pointed->first_weight; w < pointed->first_weight + pointed->weight_count; w++) {
        struct weight *weight = &builder->plan->weights[w];
        weight->tensor        = whole >= 0 ? part_of_whole(builder, weight, weight->name, whole) : -1;
        if (whole >= 0 && pointed->is_fp8) {
            int32_t factor                        = quantize_weight_factor(builder, w);
            builder->usage[weight->tensor].factor = factor;
        }
    }
}

void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *pointed = &builder->plan->units[unit];
    for (int32_t w = pointed->first_weight; w < pointed->first_weight + pointed->weight_count; w++) {
        struct weight *weight = &builder->plan->weights[w];
        weight->gradient      = whole >= 0 ? part_of_whole(builder, weight, "weight gradient", whole) : -1;
    }
}

int32_t unit_updated_weight(struct builder *builder, int32_t unit)
{
    const struct plan_unit *updated = &builder->plan->units[unit];
    if (!updates_slice(updated)) {
        return updated->weight;
    }
    return builder_part(builder, "weight slice", updated->weight, updated->updated.first - updated->kept.first,
                        DIMS(updated->updated.elements));
}

void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold)
{
    builder_transfer(builder, &(struct transfer){.kind = OP_ALL_GATHER,
                                                 .role = "parameter gather",
                                                 .axes = builder->plan->units[unit].update_axes,
                                                 .lane = LANE_PARAMETER_GATHER,
                                                 .in   = unit_updated_weight(builder, unit),
                                                 .out  = builder->plan->units[unit].weight,
                                                 .hold = hold});
}

static void gather_shards(struct builder *builder, int32_t unit)
{
    struct plan    *plan     = builder->plan;
    int32_t         whole    = builder_tensor(builder, "gathered weights", STORAGE_ACTIVATION,
                                              plan->tensors[plan->units[unit].weight].dtype, DIMS(plan->units[unit].elements));
    struct transfer transfer = {.kind = OP_ALL_GATHER,
                                .role = "parameter gather",
                                .axes = plan->units[unit].shard_axes,
                                .lane = LANE_PARAMETER_GATHER,
                                .in   = plan->units[unit].weight,
                                .out  = whole,
                                .hold = builder->last_compute};
    builder_transfer(builder, &transfer);
    unit_point_weights(builder, unit, whole);
}

// The transfer may start when the ops before this unit's turn are done: not earlier, or every unit's weights would be
// gathered at once.
static void gather(struct builder *builder, int32_t unit)
{
    struct op_tag tag = enter(builder, unit, (enum phase)builder->tag.phase);
    if (is_sharded(builder, unit)) {
        gather_shards(builder, unit);
    } else {
        unit_gather_updated(builder, unit, builder->last_compute);
    }
    builder->states[unit].is_whole = true;
    builder->tag                   = tag;
}

void unit_acquire(struct builder *builder, int32_t unit, int32_t direction)
{
    int32_t each  = builder->plan->precision.has_fp8_weights ? 2 : 1;    // a block and its linears are one
    int32_t ahead = direction == 0 ? 0 : (int32_t)builder->prefetch * each;
    for (int32_t i = 0; i <= ahead; i++) {
        int32_t next = unit + i * direction;
        if (next < builder->first_unit || next >= builder->plan->unit_count || builder->states[next].is_whole) {
            continue;
        }
        // Shards are gathered for the chunk at hand; updated weights come to stay, those of other chunks too.
        bool is_other     = next >= builder->end_unit && is_sharded(builder, next);
        bool is_embedding = builder->plan->units[next].place == 0;
        if (!is_other && (direction >= 0 || !is_embedding)) {    // backwards, the embedding's weights are not needed
            gather(builder, next);
        }
    }
}

void unit_release(struct builder *builder, int32_t unit)
{
    if (is_sharded(builder, unit)) {
        unit_point_weights(builder, unit, -1);
        builder->states[unit].is_whole = false;
    }
}

// What separates the weights of a unit takes part in its transfers, and must not be garbage.
static void clear_padding(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *cleared = &builder->plan->units[unit];
    for (int32_t i = 0; i < cleared->weight_count; i++) {
        const struct weight *weight = &builder->plan->weights[cleared->first_weight + i];
        int64_t              begin  = weight->first + weight->rows * weight->columns;
        int64_t              end    = i + 1 < cleared->weight_count ? weight[1].first : cleared->elements;
        if (begin < end) {
            struct op op = builder_op(builder, OP_CLEAR, "gradient padding");
            builder_operand(&op, CLEAR_OUT, ACCESS_WRITE,
                            builder_part(builder, "padding", whole, begin, DIMS(end - begin)));
            op.shape.elements.elements = end - begin;
            builder_append(builder, &op);
        }
    }
}

void unit_begin_gradients(struct builder *builder, int32_t unit)
{
    struct unit_state *state = &builder->states[unit];
    if (!is_sharded(builder, unit) || state->whole_gradient >= 0) {
        return;
    }
    // Two units' whole gradients may exist: one being written, one being reduced.
    if (builder->reduces[1] >= 0) {
        builder_hold_compute(builder, builder->reduces[1]);
        builder->reduces[1] = -1;
    }
    struct op_tag tag     = enter(builder, unit, PHASE_BACKWARD);
    state->whole_gradient = builder_tensor(builder, "whole gradients", STORAGE_ACTIVATION,
                                           builder->plan->precision.reduce, DIMS(builder->plan->units[unit].elements));
    unit_point_gradients(builder, unit, state->whole_gradient);
    clear_padding(builder, unit, state->whole_gradient);
    builder->tag = tag;
}

static int32_t reduce_over_replicas(struct builder *builder, int32_t unit, int32_t tensor)
{
    return builder_transfer(builder, &(struct transfer){.kind = OP_ALL_REDUCE,
                                                        .role = "gradient reduce",
                                                        .axes = builder->plan->units[unit].replica_axes,
                                                        .lane = LANE_GRADIENT_REDUCE,
                                                        .in   = -1,
                                                        .out  = tensor,
                                                        .hold = -1});
}

static int32_t reduce_to_slices(struct builder *builder, uint32_t axes, int32_t whole, int32_t slice)
{
    return builder_transfer(builder, &(struct transfer){.kind = OP_REDUCE_SCATTER,
                                                        .role = "gradient reduce-scatter",
                                                        .axes = axes,
                                                        .lane = LANE_GRADIENT_REDUCE,
                                                        .in   = whole,
                                                        .out  = slice,
                                                        .hold = -1});
}

// What is left of a block without its linears is too little to be held back for.
static bool leaves_linears(const struct builder *builder, int32_t unit)
{
    const struct plan *plan = builder->plan;
    return plan->precision.has_fp8_weights && layer_of_place(plan, plan->units[unit].place) >= 0 &&
           !plan->units[unit].is_fp8;
}

// This microbatch's whole gradients to this rank's slice of their sum.
static void end_sharded(struct builder *builder, int32_t unit)
{
    const struct plan *plan      = builder->plan;
    struct unit_state *state     = &builder->states[unit];
    bool               is_single = plan->train.accumulation == 1;
    int32_t            slice     = plan->units[unit].gradient;
    if (!is_single || plan->precision.reduce != plan->precision.gradient) {
        slice               = builder_tensor(builder, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                                             DIMS(plan->units[unit].kept.elements));
        state->reduced      = slice;
        state->reduced_adds = builder->tag.microbatch > 0;
    }
    int32_t reduction = reduce_to_slices(builder, plan->units[unit].shard_axes, state->whole_gradient, slice);
    if (!leaves_linears(builder, unit)) {
        builder->reduces[1] = builder->reduces[0];
        builder->reduces[0] = reduction;
    }
    if (is_single && has_replicas(builder, unit)) {
        reduce_over_replicas(builder, unit, slice);
    }
    state->whole_gradient = -1;
    unit_point_gradients(builder, unit, -1);
}

// The kept gradients, complete for this rank, to their sum over the replicas: everywhere, or (ZeRO-1) each its slice.
static void reduce_kept(struct builder *builder, int32_t unit)
{
    struct plan *plan  = builder->plan;
    int32_t      whole = plan->units[unit].gradient;
    if (!has_replicas(builder, unit)) {
        return;
    }
    bool is_narrow = plan->precision.reduce != plan->precision.gradient;
    if (is_narrow) {
        whole = builder_tensor(builder, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                               DIMS(plan->units[unit].kept.elements));
        builder_cast(builder, "gradient cast", plan->units[unit].gradient, whole, false);
    }
    int32_t reduced = whole;
    if (plan->is_zero) {
        reduced = builder_part(builder, "gradient slice", whole, plan->units[unit].updated.first,
                               DIMS(plan->units[unit].updated.elements));
        reduce_to_slices(builder, plan->units[unit].update_axes, whole, reduced);
    } else {
        reduce_over_replicas(builder, unit, whole);
    }
    if (is_narrow) {
        builder->states[unit].reduced      = reduced;
        builder->states[unit].reduced_adds = false;
    }
}

void unit_end_gradients(struct builder *builder, int32_t unit)
{
    const struct plan *plan = builder->plan;
    struct op_tag      tag  = enter(builder, unit, PHASE_REDUCE);
    if (is_sharded(builder, unit)) {
        tensor_reduce_replicated(builder, unit);
        end_sharded(builder, unit);
    } else if (tag.microbatch == plan->train.accumulation - 1) {
        tensor_reduce_replicated(builder, unit);
        reduce_kept(builder, unit);
    }
    builder->tag = tag;
}

int32_t unit_updated_gradient(struct builder *builder, int32_t unit)
{
    const struct plan_unit *updated = &builder->plan->units[unit];
    if (!updates_slice(updated)) {
        return updated->gradient;
    }
    return builder_part(builder, "gradient slice", updated->gradient, updated->updated.first - updated->kept.first,
                        DIMS(updated->updated.elements));
}

static void settle(struct builder *builder)
{
    for (int32_t unit = builder->first_unit; unit < builder->end_unit; unit++) {
        struct unit_state *state = &builder->states[unit];
        if (state->reduced >= 0) {
            struct op_tag tag = enter(builder, unit, PHASE_REDUCE);
            int32_t to = builder->plan->tensors[state->reduced].elements == builder->plan->units[unit].kept.elements
                             ? builder->plan->units[unit].gradient
                             : unit_updated_gradient(builder, unit);
            builder_cast(builder, "gradient cast", state->reduced, to, state->reduced_adds);
            state->reduced = -1;
            builder->tag   = tag;
        }
    }
}

void unit_settle_gradients(struct builder *builder)
{
    int64_t microbatches = builder->plan->train.accumulation;
    settle(builder);
    if (microbatches == 1 || builder->tag.microbatch < microbatches - 1) {
        return;
    }
    for (int32_t unit = builder->first_unit; unit < builder->end_unit; unit++) {
        if (is_sharded(builder, unit)) {
            struct op_tag tag = enter(builder, unit, PHASE_REDUCE);
            reduce_kept(builder, unit);
            builder->tag = tag;
        }
    }
    settle(builder);
}
