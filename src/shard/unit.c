// SPDX-License-Identifier: MIT
// Creates FSDP units: their index in the model, the slice that a rank keeps, and its tensors. Gathers the units'
// weights, and reduces their gradients.

#include "gswbench/linear.h"
#include "gswbench/number.h"

int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices)
{
    enum format format =
        plan->precision.has_low_precision_weights ? plan->precision.low_precision_format[ROLE_WEIGHT] : FORMAT_BF16;
    return number_round_up(elements, 16 * 8 / format_table[format].bits * slices);
}

static bool unit_is_sharded(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].shard_axes) > 1;
}

static bool unit_has_replicas(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].replica_axes) > 1;
}

bool unit_reduces_each(const struct builder *builder, int32_t unit)
{
    return unit_is_sharded(builder, unit) || (builder->reduces_each && unit_has_replicas(builder, unit));
}

bool unit_updates_slice(const struct builder *builder, int32_t unit)
{
    const struct plan_unit *sliced = &builder->plan->units[unit];
    return !unit_is_sharded(builder, unit) && mesh_group_size(&builder->plan->mesh, sliced->update_axes) > 1;
}

static struct plan_slice slice_of(const struct plan *plan, uint32_t axes, int64_t elements)
{
    int64_t each = elements / mesh_group_size(&plan->mesh, axes);
    return (struct plan_slice){mesh_group_index(&plan->mesh, plan->rank, axes) * each, each};
}

int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer)
{
    return block_places(&builder->plan->model) + expert_layer;
}

int64_t unit_place_of_linears(const struct builder *builder, int64_t layer)
{
    return unit_place_of_experts(builder, builder->expert_layers) + layer;
}

int64_t unit_place_of_adapters(const struct builder *builder, int64_t layer)
{
    const struct plan *plan     = builder->plan;
    bool               is_apart = plan->precision.has_low_precision_weights || muon_is_used(plan);
    return layer + unit_place_of_linears(builder, is_apart ? model_all_layers(&plan->model) : 0);
}

int64_t unit_places(const struct builder *builder)
{
    const struct model_config *model = &builder->plan->model;
    return unit_place_of_adapters(builder, model_is_frozen(model) ? model_all_layers(model) : 0);
}

void unit_create(struct builder *builder, const struct plan_unit *described)
{
    struct plan            *plan      = builder->plan;
    const struct precision *precision = &plan->precision;
    int32_t                 index     = plan->unit_count++;
    struct plan_unit       *unit      = &plan->units[index];

    *unit              = *described;
    unit->shard_axes   = mesh_shard_axes(&plan->mesh, unit->is_experts);
    unit->replica_axes = mesh_replica_axes(&plan->mesh, unit->is_experts);
    unit->first_weight = plan->weight_count;
    unit->update_axes  = plan->is_zero && !unit->is_frozen ? unit->replica_axes : unit->shard_axes;
    unit->elements =
        unit_align(plan, unit->elements, mesh_group_size(&plan->mesh, unit->shard_axes | unit->replica_axes));
    unit->kept    = slice_of(plan, unit->shard_axes, unit->elements);
    unit->updated = unit->is_muon ? unit->kept : slice_of(plan, unit->update_axes, unit->elements);

    bool is_whole =
        !unit_is_sharded(builder, index) && (!builder->gathers_forward || !unit_updates_slice(builder, index));
    builder->states[index] = (struct unit_state){.is_whole = is_whole, .whole_gradient = -1, .reduced = -1};

    const int64_t *kept = DIMS(unit->kept.elements), *updated = DIMS(unit->updated.elements);
    unit->weight = assembly_tensor(
        &builder->assembly, "weights", STORAGE_WEIGHT,
        unit->is_low_precision ? precision->low_precision_format[ROLE_WEIGHT] : precision->weight, kept);
    unit->gradient = unit->master = unit->first_moment = unit->second_moment = -1;
    if (unit->is_frozen) {
        return;
    }
    unit->gradient = assembly_tensor(&builder->assembly, "gradients", STORAGE_GRADIENT, precision->gradient,
                                     unit_reduces_each(builder, index) ? updated : kept);
    if (unit->is_muon) {
        return;    // muon_assign_owners adds the optimizer state when it knows the owners of matrices
    }
    unit->master = precision->has_master
                       ? assembly_tensor(&builder->assembly, "master weights", STORAGE_OPTIMIZER, FORMAT_F32, updated)
                       : -1;
    unit->first_moment =
        assembly_tensor(&builder->assembly, "first moments", STORAGE_OPTIMIZER, precision->moment, updated);
    unit->second_moment =
        assembly_tensor(&builder->assembly, "second moments", STORAGE_OPTIMIZER, precision->moment, updated);
}

// Tags the following ops with the unit's layer, with `phase` and with PART_GRADIENTS. Returns the previous tag.
static struct op_tag unit_enter(struct builder *builder, int32_t unit, enum phase phase)
{
    struct op_tag tag = builder->assembly.tag;
    assembly_set_part(&builder->assembly, PART_GRADIENTS);
    builder->assembly.tag.phase = (int16_t)phase;
    builder->assembly.tag.layer = builder->plan->tensors[builder->plan->units[unit].weight].layer;
    return tag;
}

// Returns a weight as a part of the tensor with all elements of its FSDP unit.
static int32_t part_of_whole(struct builder *builder, const struct weight *weight, const char *name, int32_t whole)
{
    return assembly_part(&builder->assembly, name, whole, weight->first,
                         weight->part[0].is_vector ? DIMS(weight->rows * weight->columns)
                                                   : DIMS(weight->rows, weight->columns));
}

void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *pointed = &builder->plan->units[unit];
    for (int32_t w = pointed->first_weight; w < pointed->first_weight + pointed->weight_count; w++) {
        struct weight *weight = &builder->plan->weights[w];
        weight->tensor        = whole >= 0 ? part_of_whole(builder, weight, weight->name, whole) : -1;
        if (whole >= 0 && pointed->is_low_precision) {
            quantize_point(builder, w);
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
    if (!unit_updates_slice(builder, unit)) {
        return updated->weight;
    }
    return assembly_part(&builder->assembly, "weight slice", updated->weight,
                         updated->updated.first - updated->kept.first, DIMS(updated->updated.elements));
}

int32_t unit_updated_gradient(struct builder *builder, int32_t unit)
{
    const struct plan_unit *updated = &builder->plan->units[unit];
    if (!unit_updates_slice(builder, unit) || unit_reduces_each(builder, unit)) {
        return updated->gradient;
    }
    return assembly_part(&builder->assembly, "gradient slice", updated->gradient,
                         updated->updated.first - updated->kept.first, DIMS(updated->updated.elements));
}

// The next functions, up to unit_leave, gather and release weights of FSDP units. A pass gathers a unit before it uses
// it, and prefetches a bounded number of units. With ZeRO-1 the optimizer may instead gather units after their update.

void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold)
{
    if (builder->plan->units[unit].is_muon) {
        muon_broadcast(builder, unit, hold);
        return;
    }
    collect(builder,
            &(struct communication){OP_ALL_GATHER, "weight gather", .axes = builder->plan->units[unit].update_axes,
                                    .stream = STREAM_WEIGHT_GATHER, .in = unit_updated_weight(builder, unit),
                                    .out = builder->plan->units[unit].weight, .hold = hold});
}

static void gather_shards(struct builder *builder, int32_t unit)
{
    struct plan *plan  = builder->plan;
    int32_t      whole = assembly_tensor(&builder->assembly, "gathered weights", STORAGE_ACTIVATION,
                                         plan->tensors[plan->units[unit].weight].format, DIMS(plan->units[unit].elements));
    collect(builder, &(struct communication){OP_ALL_GATHER, "weight gather", .axes = plan->units[unit].shard_axes,
                                             .stream = STREAM_WEIGHT_GATHER, .in = plan->units[unit].weight,
                                             .out = whole, .hold = builder->assembly.last_compute});
    unit_point_weights(builder, unit, whole);
}

// Gathers a unit's weights. The all-gather waits for the compute ops appended so far. Otherwise all units could be
// gathered at the start of the step, which takes more memory.
static void gather(struct builder *builder, int32_t unit)
{
    struct op_tag tag = unit_enter(builder, unit, (enum phase)builder->assembly.tag.phase);

    assembly_set_part(&builder->assembly, PART_WEIGHTS);
    if (unit_is_sharded(builder, unit)) {
        gather_shards(builder, unit);
    } else {
        unit_gather_updated(builder, unit, builder->assembly.last_compute);
    }
    builder->states[unit].is_whole = true;
    builder->assembly.tag          = tag;
}

void unit_acquire(struct builder *builder, int32_t unit, int32_t direction)
{
    int32_t each = builder->plan->precision.has_low_precision_weights + model_is_frozen(&builder->plan->model) +
                   muon_is_used(builder->plan) + 1;    // FSDP units per layer; a layer's experts count as another layer
    int32_t ahead = direction == 0 ? 0 : (int32_t)builder->prefetch * each;
    for (int32_t i = 0; i <= ahead; i++) {
        int32_t next = unit + i * direction;
        if (next < builder->first_unit || next >= builder->plan->unit_count || builder->states[next].is_whole) {
            continue;
        }
        // Sharded weights of another pipeline chunk would occupy memory until that chunk runs, so they are not
        // prefetched. Weights that ZeRO-1 updates stay gathered anyway.
        bool is_other     = next >= builder->end_unit && unit_is_sharded(builder, next);
        bool is_embedding = builder->plan->units[next].place == 0;
        if (!is_other && (direction >= 0 || !is_embedding)) {    // the backward pass does not need the embedding
            gather(builder, next);
        }
    }
    builder->states[unit].users++;
}

void unit_release(struct builder *builder, int32_t unit)
{
    if (unit_is_sharded(builder, unit) && builder->states[unit].users == 0) {
        unit_point_weights(builder, unit, -1);
        builder->states[unit].is_whole = false;
    }
}

void unit_leave(struct builder *builder, int32_t unit, bool stays)
{
    builder->states[unit].users--;
    if (!stays) {
        unit_release(builder, unit);
    }
}

// The following functions handle gradients of FSDP units. Gradients of replicated units accumulate in place and are
// reduced once per step. Gradients of sharded units, and with gradient_reduce = microbatch the gradients of every unit,
// are written to a temporary per microbatch and reduced after it. At most two units have such a temporary at a time.

// Clears the padding between weights, because a reduction of the whole tensor reads it.
static void clear_padding(struct builder *builder, int32_t unit, int32_t whole)
{
    const struct plan_unit *cleared = &builder->plan->units[unit];
    for (int32_t i = 0; i < cleared->weight_count; i++) {
        const struct weight *weight = &builder->plan->weights[cleared->first_weight + i];
        int64_t              begin  = weight->first + weight->rows * weight->columns;
        int64_t              end    = i + 1 < cleared->weight_count ? weight[1].first : cleared->elements;
        if (begin < end) {
            assembly_clear(&builder->assembly, "gradient padding",
                           assembly_part(&builder->assembly, "padding", whole, begin, DIMS(end - begin)));
        }
    }
}

void unit_begin_gradients(struct builder *builder, int32_t unit)
{
    struct unit_state *state = &builder->states[unit];
    if (builder->plan->units[unit].is_frozen || !unit_reduces_each(builder, unit) || state->whole_gradient >= 0) {
        return;
    }
    // At most two units have unsharded gradients: the ops write one unit's gradients while the other's are reduced.
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
    if (builder->delays) {
        int32_t first = builder->plan->weights[builder->plan->units[unit].first_weight].gradient;
        LIST_APPEND(
            builder->delayed, builder->delayed_count,
            ((struct delayed){
                .kind = DELAYED_BEGIN, .tag = tag, .unit = unit, .whole = state->whole_gradient, .first_part = first}));
    }
}

void unit_resume_gradients(struct builder *builder, const struct delayed *begun)
{
    const struct plan_unit *unit                = &builder->plan->units[begun->unit];
    builder->states[begun->unit].whole_gradient = begun->whole;
    for (int32_t i = 0; i < unit->weight_count; i++) {    // their tensors have consecutive indices
        builder->plan->weights[unit->first_weight + i].gradient = begun->first_part + i;
    }
}

// Postpones the reduction of a unit's gradients until its delayed weight gradients of this microbatch are computed
// (zero-bubble schedule). The next microbatch then writes to a new temporary.
static void delay_end(struct builder *builder, int32_t unit)
{
    LIST_APPEND(builder->delayed, builder->delayed_count,
                ((struct delayed){.kind = DELAYED_END, .tag = builder->assembly.tag, .unit = unit}));
    if (unit_reduces_each(builder, unit)) {
        builder->states[unit].whole_gradient = -1;
        unit_point_gradients(builder, unit, -1);
    }
}

// Reduces gradients over replicas. For slices of a sharded unit this has a separate stream, to overlap with the
// reduce-scatter of the next unit, which uses other links.
static int32_t reduce_over_replicas(struct builder *builder, int32_t unit, int32_t tensor)
{
    enum stream stream = unit_is_sharded(builder, unit) ? STREAM_REPLICA_REDUCE : STREAM_GRADIENT_REDUCE;
    return collect(builder, &(struct communication){OP_ALL_REDUCE, "gradient reduce",
                                                    .axes = builder->plan->units[unit].replica_axes, .stream = stream,
                                                    .in = -1, .out = tensor, .hold = -1});
}

static int32_t reduce_to_slices(struct builder *builder, uint32_t axes, int32_t whole, int32_t slice)
{
    return collect(builder,
                   &(struct communication){OP_REDUCE_SCATTER, "gradient reduce-scatter", .axes = axes,
                                           .stream = STREAM_GRADIENT_REDUCE, .in = whole, .out = slice, .hold = -1});
}

// Reduce-scatters this microbatch's gradients of a unit. Returns this rank's slice of the sum.
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
    // A unit with the weights of a layer other than its FP8 linears, such as norms, is too small to count for the limit
    // of two units with unsharded gradients.
    bool is_small = plan->precision.has_low_precision_weights && plan->tensors[ended->weight].layer >= 0 &&
                    !ended->is_low_precision;
    if (!is_small) {
        builder->reduces[1] = builder->reduces[0];
        builder->reduces[0] = reduction;
    }
    return slice;
}

// Reduces a unit's gradients after a microbatch: reduce-scatters them into slices, and all-reduces over replicas that
// have the same slice.
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

// Reduces a unit's accumulated gradients over the replicas: an all-reduce, or a reduce-scatter with ZeRO-1.
static void reduce_kept(struct builder *builder, int32_t unit)
{
    struct plan *plan  = builder->plan;
    int32_t      whole = plan->units[unit].gradient;
    if (!unit_has_replicas(builder, unit)) {
        return;
    }
    bool is_low_precision = plan->precision.reduce != plan->precision.gradient;
    if (is_low_precision) {
        whole = assembly_tensor(&builder->assembly, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                                DIMS(plan->units[unit].kept.elements));
        assembly_cast(&builder->assembly, "gradient cast", plan->units[unit].gradient, whole, false);
    }
    int32_t reduced = whole;
    if (plan->is_zero && !plan->units[unit].is_muon) {
        reduced = assembly_part(&builder->assembly, "gradient slice", whole, plan->units[unit].updated.first,
                                DIMS(plan->units[unit].updated.elements));
        reduce_to_slices(builder, plan->units[unit].update_axes, whole, reduced);
    } else {
        reduce_over_replicas(builder, unit, whole);
    }
    if (is_low_precision) {
        builder->states[unit].reduced      = reduced;
        builder->states[unit].reduced_adds = false;
    }
}

void unit_end_gradients(struct builder *builder, int32_t unit)
{
    const struct plan *plan = builder->plan;
    if (plan->units[unit].is_frozen) {
        return;
    }
    if (builder->delays) {
        delay_end(builder, unit);
        return;
    }
    struct op_tag tag = unit_enter(builder, unit, PHASE_REDUCE);
    if (unit_reduces_each(builder, unit)) {
        tp_reduce_replicated(builder, unit);
        end_microbatch(builder, unit);
    } else if (tag.microbatch == plan->train.accumulation - 1) {
        tp_reduce_replicated(builder, unit);
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
        if (unit_is_sharded(builder, unit) && !builder->plan->units[unit].is_frozen) {
            struct op_tag tag = unit_enter(builder, unit, PHASE_REDUCE);
            reduce_kept(builder, unit);
            builder->assembly.tag = tag;
        }
    }
    settle(builder);
}
