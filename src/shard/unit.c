// SPDX-License-Identifier: MIT
// FSDP units: their index in the model, the slice that a rank keeps, and its tensors.
#include "gswbench/quantize.h"
#include "gswbench/unit_ops.h"

int64_t block_place(const struct builder *builder, int64_t layer)
{
    return layer + (layer < builder->plan->model.layers ? 1 : 2);
}

int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices)
{
    int64_t grain = (plan->precision.has_narrow_weights ? 16 : 8) * slices;
    return (elements + grain - 1) / grain * grain;
}

bool unit_is_sharded(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].shard_axes) > 1;
}

bool unit_has_replicas(const struct builder *builder, int32_t unit)
{
    return mesh_group_size(&builder->plan->mesh, builder->plan->units[unit].replica_axes) > 1;
}

bool unit_reduces_each(const struct builder *builder, int32_t unit)
{
    return unit_is_sharded(builder, unit) || (builder->reduces_each && unit_has_replicas(builder, unit));
}

bool unit_updates_slice(const struct plan_unit *unit)
{
    return unit->updated.elements < unit->kept.elements;
}

static struct plan_slice slice_of(const struct plan *plan, uint32_t axes, int64_t elements)
{
    int64_t each = elements / mesh_group_size(&plan->mesh, axes);
    return (struct plan_slice){mesh_group_index(&plan->mesh, plan->rank, axes) * each, each};
}

int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer)
{
    return model_all_layers(&builder->plan->model) + 2 + expert_layer;
}

int64_t unit_place_of_linears(const struct builder *builder, int64_t layer)
{
    return unit_place_of_experts(builder, builder->expert_layers) + layer;
}

int64_t unit_places(const struct builder *builder)
{
    const struct plan *plan = builder->plan;
    return unit_place_of_linears(builder, plan->precision.has_narrow_weights ? model_all_layers(&plan->model) : 0);
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
    unit->update_axes  = plan->is_zero ? unit->replica_axes : unit->shard_axes;
    unit->elements =
        unit_align(plan, unit->elements, mesh_group_size(&plan->mesh, unit->shard_axes | unit->replica_axes));
    unit->kept    = slice_of(plan, unit->shard_axes, unit->elements);
    unit->updated = slice_of(plan, unit->update_axes, unit->elements);

    bool is_whole = !unit_is_sharded(builder, index) && (!builder->gathers_forward || !unit_updates_slice(unit));
    builder->states[index] = (struct unit_state){.is_whole = is_whole, .whole_gradient = -1, .reduced = -1};

    const int64_t *kept = DIMS(unit->kept.elements), *updated = DIMS(unit->updated.elements);
    unit->weight   = assembly_tensor(&builder->assembly, "weights", STORAGE_WEIGHT,
                                   unit->is_narrow ? precision->narrow_format[ROLE_WEIGHT] : precision->weight, kept);
    unit->gradient = assembly_tensor(&builder->assembly, "gradients", STORAGE_GRADIENT, precision->gradient,
                                     unit_reduces_each(builder, index) ? updated : kept);
    unit->master   = precision->has_master
                         ? assembly_tensor(&builder->assembly, "master weights", STORAGE_OPTIMIZER, FORMAT_F32, updated)
                         : -1;
    unit->first_moment =
        assembly_tensor(&builder->assembly, "first moments", STORAGE_OPTIMIZER, precision->moment, updated);
    unit->second_moment =
        assembly_tensor(&builder->assembly, "second moments", STORAGE_OPTIMIZER, precision->moment, updated);
}

struct op_tag unit_enter(struct builder *builder, int32_t unit, enum phase phase)
{
    struct op_tag tag = builder->assembly.tag;
    assembly_set_part(&builder->assembly, PART_GRADIENTS);
    builder->assembly.tag.phase = (int16_t)phase;
    builder->assembly.tag.layer = builder->plan->tensors[builder->plan->units[unit].weight].layer;
    return tag;
}

// A view of a weight in the tensor with all elements of its unit.
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
        if (whole >= 0 && pointed->is_narrow) {
            int32_t factor                                 = scales_factor(builder, w, ROLE_WEIGHT);
            builder->assembly.usage[weight->tensor].factor = factor;
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
    if (!unit_updates_slice(updated)) {
        return updated->weight;
    }
    return assembly_part(&builder->assembly, "weight slice", updated->weight,
                         updated->updated.first - updated->kept.first, DIMS(updated->updated.elements));
}

int32_t unit_updated_gradient(struct builder *builder, int32_t unit)
{
    const struct plan_unit *updated = &builder->plan->units[unit];
    if (!unit_updates_slice(updated) || unit_reduces_each(builder, unit)) {
        return updated->gradient;
    }
    return assembly_part(&builder->assembly, "gradient slice", updated->gradient,
                         updated->updated.first - updated->kept.first, DIMS(updated->updated.elements));
}
