// SPDX-License-Identifier: MIT
// Where a unit's weights and gradients are while microbatches pass: always here, or (FSDP) gathered before use and
// reduced after it, with a bounded number of units in flight.
#include "internal.h"

// Slices start at multiples of this many elements: 16 bytes of the narrowest type.
enum { SLICE_ALIGNMENT = 8 };

static uint32_t shard_axes(void)
{
    return 1u << AXIS_FSDP;
}

static uint32_t replica_axes(void)
{
    return 1u << AXIS_DP;
}

static bool is_sharded(const struct builder *builder)
{
    return builder->plan->mesh.size[AXIS_FSDP] > 1;
}

static struct op_tag unit_tag(const struct builder *builder, int32_t unit, enum phase phase)
{
    const struct plan *plan = builder->plan;
    return (struct op_tag){.phase      = (int16_t)phase,
                           .layer      = plan->tensors[plan->units[unit].gradient].layer,
                           .chunk      = -1,
                           .microbatch = builder->tag.microbatch};
}

static struct plan_slice slice_of(const struct plan *plan, uint32_t axes, int64_t elements)
{
    int64_t each = elements / mesh_group_size(&plan->mesh, axes);
    return (struct plan_slice){mesh_group_index(&plan->mesh, plan->rank, axes) * each, each};
}

void unit_create(struct builder *builder, int64_t layer, int64_t elements)
{
    struct plan            *plan      = builder->plan;
    const struct precision *precision = &plan->precision;
    int32_t                 index     = plan->unit_count++;
    struct plan_unit       *unit      = &plan->units[index];
    int64_t grain = SLICE_ALIGNMENT * mesh_group_size(&plan->mesh, shard_axes()) * mesh_group_size(&plan->mesh, replica_axes());

    builder->states[index] = (struct unit_state){
        .is_whole = !is_sharded(builder), .gathered = -1, .whole_gradient = -1, .reduced = -1, .last_reduce = -1};
    *unit = (struct plan_unit){.elements = (elements + grain - 1) / grain * grain, .first_weight = plan->weight_count, .master = -1};
    unit->kept    = slice_of(plan, shard_axes(), unit->elements);
    unit->updated = unit->kept;

    builder->tag.layer = (int16_t)layer;
    unit->weight   = builder_tensor(builder, "weights", STORAGE_WEIGHT, precision->weight, DIMS(unit->kept.elements));
    unit->gradient = builder_tensor(builder, "gradients", STORAGE_GRADIENT, precision->gradient, DIMS(unit->kept.elements));
    if (precision->has_master) {
        unit->master = builder_tensor(builder, "master weights", STORAGE_OPTIMIZER, DTYPE_F32, DIMS(unit->updated.elements));
    }
    unit->first_moment  = builder_tensor(builder, "first moments", STORAGE_OPTIMIZER, precision->moment, DIMS(unit->updated.elements));
    unit->second_moment = builder_tensor(builder, "second moments", STORAGE_OPTIMIZER, precision->moment, DIMS(unit->updated.elements));
    builder->tag.layer  = -1;
}

// The weights of a unit as parts of a tensor that holds its whole range.
static void point_weights(struct builder *builder, int32_t unit, int32_t whole, bool is_gradient)
{
    const struct plan_unit *pointed = &builder->plan->units[unit];
    int16_t                 layer   = builder->tag.layer;
    builder->tag.layer              = builder->plan->tensors[pointed->gradient].layer;
    for (int32_t w = pointed->first_weight; w < pointed->first_weight + pointed->weight_count; w++) {
        struct weight *weight = &builder->plan->weights[w];
        ...
    }
    builder->tag.layer = layer;
}
