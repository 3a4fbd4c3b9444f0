// SPDX-License-Identifier: MIT
// Gradients of FSDP units. Replicated gradients accumulate in place and are reduced once per step. Sharded ones, and
// replicated ones with gradient_reduce = microbatch, are written to a temporary per microbatch and reduced after it,
// with at most two units in flight.
#include "gswbench/linear.h"
#include "gswbench/unit_ops.h"

// Padding between weights is part of the reduction and must not be garbage.
static void clear_padding(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *cleared = &builder->plan->units[unit];
    for (int32_t i = 0; i < cleared->weight_count; i++) {
        const struct weight *weight = &builder->plan->weights[cleared->first_weight + i];
        int64_t              begin  = weight->first + weight->rows * weight->columns;
        int64_t              end    = i + 1 < cleared->weight_count ? weight[1].first : cleared->elements;
        if (begin < end) {
            struct op op = assembly_op(&builder->assembly, OP_CLEAR, "gradient padding");
            assembly_operand(&op, CLEAR_OUT, ACCESS_WRITE,
                             assembly_part(&builder->assembly, "padding", whole, begin, DIMS(end - begin)));
            op.shape.elements.elements = end - begin;
            assembly_append(&builder->assembly, &op);
        }
    }
}

void unit_begin_gradients(struct builder *builder, int32_t unit)
{
    struct unit_state *state = &builder->states[unit];
    if (!unit_reduces_each(builder, unit) || state->whole_gradient >= 0) {
        return;
    }
    // At most two units have unsharded gradients: one is written, one is reduced.
    if (builder->reduces[1] >= 0) {
        assembly_hold_compute(&builder->assembly, builder->reduces[1]);
        builder->reduces[1] = -1;
    }
    struct op_tag tag     = unit_enter(builder, unit, PHASE_BACKWARD);
    state->whole_gradient = assembly_tensor(&builder->assembly, "whole gradients", STORAGE_ACTIVATION,
                                            builder->plan->precision.reduce, DIMS(builder->plan->units[unit].elements));
    unit_point_gradients(builder, unit, state->whole_gradient);
    clear_padding(builder, unit, state->whole_gradient);
    builder->assembly.tag = tag;
}

// Reducing slices over replicas has a separate lane, to overlap with the next unit's reduce-scatter on other links.
static int32_t reduce_over_replicas(struct builder *builder, int32_t unit, int32_t tensor)
{
    enum lane lane = unit_is_sharded(builder, unit) ? LANE_REPLICA_REDUCE : LANE_GRADIENT_REDUCE;
    return assembly_transfer(&builder->assembly, &(struct transfer){.kind = OP_ALL_REDUCE,
                                                                    .role = "gradient reduce",
                                                                    .axes = builder->plan->units[unit].replica_axes,
                                                                    .lane = lane,
                                                                    .in   = -1,
                                                                    .out  = tensor,
                                                                    .hold = -1});
}

static int32_t reduce_to_slices(struct builder *builder, uint32_t axes, int32_t whole, int32_t slice)
{
    return assembly_transfer(&builder->assembly, &(struct transfer){.kind = OP_REDUCE_SCATTER,
                                                                    .role = "gradient reduce-scatter",
                                                                    .axes = axes,
                                                                    .lane = LANE_GRADIENT_REDUCE,
                                                                    .in   = whole,
                                                                    .out  = slice,
                                                                    .hold = -1});
}

// With FP8 weights, the unit without the linears is too small to count for the limit.
static bool leaves_linears(const struct builder *builder, int32_t unit)
{
    const struct plan *plan = builder->plan;
    return plan->precision.has_narrow_weights && plan->tensors[plan->units[unit].weight].layer >= 0 &&
           !plan->units[unit].is_narrow;
}

// Reduce-scatters this microbatch's gradients. Returns the slice of the sum.
static int32_t end_slice(struct builder *builder, int32_t unit)
{
    const struct plan      *plan  = builder->plan;
    const struct plan_unit *ended = &plan->units[unit];
    int32_t                 slice = ended->gradient;
    if (plan->train.accumulation > 1 || plan->precision.reduce != plan->precision.gradient) {
        slice = assembly_tensor(&builder->assembly, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                                DIMS(ended->updated.elements));
    }
    int32_t reduction = reduce_to_slices(builder, ended->update_axes, builder->states[unit].whole_gradient, slice);
    if (!leaves_linears(builder, unit)) {
        builder->reduces[1] = builder->reduces[0];
        builder->reduces[0] = reduction;
    }
    return slice;
}

// Reduces a unit's gradients after a microbatch: to the slice, and over replicas that the slice is not sharded over.
static void end_microbatch(struct builder *builder, int32_t unit)
{
    const struct plan      *plan       = builder->plan;
    const struct plan_unit *ended      = &plan->units[unit];
    struct unit_state      *state      = &builder->states[unit];
    uint32_t                others     = ended->replica_axes & ~ended->update_axes;
    bool                    has_slices = mesh_group_size(&plan->mesh, ended->update_axes) > 1;
    int32_t                 sum        = has_slices ? end_slice(builder, unit) : state->whole_gradient;
    if ((plan->train.accumulation == 1 || builder->reduces_each) && mesh_group_size(&plan->mesh, others) > 1) {
        reduce_over_replicas(builder, unit, sum);
    }
    if (sum != ended->gradient) {
        state->reduced      = sum;
        state->reduced_adds = builder->assembly.tag.microbatch > 0;
    }
    state->whole_gradient = -1;
    unit_point_gradients(builder, unit, -1);
}

// Reduces accumulated gradients over the replicas: an all-reduce, or a reduce-scatter with ZeRO-1.
static void reduce_kept(struct builder *builder, int32_t unit)
{
    struct plan *plan  = builder->plan;
    int32_t      whole = plan->units[unit].gradient;
    if (!unit_has_replicas(builder, unit)) {
        return;
    }
    bool is_narrow = plan->precision.reduce != plan->precision.gradient;
    if (is_narrow) {
        whole = assembly_tensor(&builder->assembly, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                                DIMS(plan->units[unit].kept.elements));
        assembly_cast(&builder->assembly, "gradient cast", plan->units[unit].gradient, whole, false);
    }
    int32_t reduced = whole;
    if (plan->is_zero) {
        reduced = assembly_part(&builder->assembly, "gradient slice", whole, plan->units[unit].updated.first,
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
    struct op_tag      tag  = unit_enter(builder, unit, PHASE_REDUCE);
    if (unit_reduces_each(builder, unit)) {
        tensor_reduce_replicated(builder, unit);
        end_microbatch(builder, unit);
    } else if (tag.microbatch == plan->train.accumulation - 1) {
        tensor_reduce_replicated(builder, unit);
        reduce_kept(builder, unit);
    }
    builder->assembly.tag = tag;
}

static void settle(struct builder *builder)
{
    for (int32_t unit = builder->first_unit; unit < builder->end_unit; unit++) {
        struct unit_state *state = &builder->states[unit];
        if (state->reduced >= 0) {
            struct op_tag tag = unit_enter(builder, unit, PHASE_REDUCE);
            int32_t to = builder->plan->tensors[state->reduced].elements == builder->plan->units[unit].kept.elements
                             ? builder->plan->units[unit].gradient
                             : unit_updated_gradient(builder, unit);
            assembly_cast(&builder->assembly, "gradient cast", state->reduced, to, state->reduced_adds);
            state->reduced        = -1;
            builder->assembly.tag = tag;
        }
    }
}

void unit_settle_gradients(struct builder *builder)
{
    int64_t microbatches = builder->plan->train.accumulation;
    settle(builder);
    if (builder->reduces_each || microbatches == 1 || builder->assembly.tag.microbatch < microbatches - 1) {
        return;
    }
    for (int32_t unit = builder->first_unit; unit < builder->end_unit; unit++) {
        if (unit_is_sharded(builder, unit)) {
            struct op_tag tag = unit_enter(builder, unit, PHASE_REDUCE);
            reduce_kept(builder, unit);
            builder->assembly.tag = tag;
        }
    }
    settle(builder);
}
