// SPDX-License-Identifier: MIT
// Persistent FP8 scales: one slot per linear and role. A tensor has a slot if its scale is known before its values
// (delayed scaling), or if ranks must agree on it.
#include "gswbench/quantize.h"

static bool is_delayed(const struct plan *plan)
{
    return plan->precision.narrow_linears != 0 && plan->precision.recipe == RECIPE_DELAYED;
}

// Whether AdamW finds the magnitudes of weights for their scales.
static bool notes_magnitudes(const struct plan *plan)
{
    return plan->precision.recipe == RECIPE_CURRENT && plan->precision.fuses_copies &&
           !plan->precision.has_narrow_weights;
}

bool scales_have_slot(const struct plan *plan, enum linear_role role)
{
    return is_delayed(plan) || (role == ROLE_WEIGHT && (plan->precision.has_narrow_weights || notes_magnitudes(plan)));
}

// A tensor with a slot per linear and role, followed in plan->tensors by one part per slot.
static int32_t declare_slots(struct builder *builder, const char *name, const char *slot_name)
{
    struct plan *plan  = builder->plan;
    int64_t      slots = LINEAR_ROLES * plan->scaling.linears;
    int32_t      all   = assembly_tensor(&builder->assembly, name, STORAGE_OPTIMIZER, FORMAT_F32, DIMS(slots));
    for (int64_t slot = 0, place = 0; slot < slots; slot++) {
        int64_t linear = slot % plan->scaling.linears;
        place          = linear == 0 ? 0 : place;
        while (linear >= builder->blocks[place].first_linear + builder->blocks[place].linears) {
            place++;
        }
        builder->assembly.tag.layer = (int16_t)builder->blocks[place].layer;
        assembly_part(&builder->assembly, slot_name, all, slot, DIMS(1));
    }
    builder->assembly.tag.layer = -1;
    return all;
}

static int32_t slot_of(const struct builder *builder, int32_t all, int32_t weight, enum linear_role role)
{
    const struct plan *plan = builder->plan;
    return all + 1 + (int32_t)(role * plan->scaling.linears + plan->weights[weight].linear);
}

void scales_declare(struct builder *builder)
{
    struct plan *plan = builder->plan;
    plan->scaling     = (struct plan_scaling){.scales = -1, .factors = -1, .amaxes = -1, .history = -1};
    if (!scales_have_slot(plan, ROLE_WEIGHT)) {
        return;
    }
    struct plan_scaling *scaling = &plan->scaling;
    scaling->linears             = builder->linears;
    scaling->scales              = declare_slots(builder, "scales", "scale");
    scaling->factors             = declare_slots(builder, "factors", "factor");
    scaling->amaxes              = declare_slots(builder, "magnitudes", "magnitude");
    if (is_delayed(plan)) {
        scaling->history = assembly_tensor(&builder->assembly, "magnitude history", STORAGE_OPTIMIZER, FORMAT_F32,
                                           DIMS(LINEAR_ROLES * scaling->linears, plan->precision.magnitude_history));
    }
}

void scales_add_slot(struct builder *builder, struct op *quantize, int32_t weight, enum linear_role role)
{
    const struct plan_scaling *scaling = &builder->plan->scaling;
    assembly_operand(quantize, QUANTIZE_SCALE, ACCESS_READ, slot_of(builder, scaling->scales, weight, role));
    if (is_delayed(builder->plan)) {
        assembly_operand(quantize, QUANTIZE_AMAX, ACCESS_UPDATE, slot_of(builder, scaling->amaxes, weight, role));
    }
}

int32_t scales_factor(const struct builder *builder, int32_t weight, enum linear_role role)
{
    return slot_of(builder, builder->plan->scaling.factors, weight, role);
}

int32_t scales_magnitude(const struct builder *builder, int32_t weight)
{
    return slot_of(builder, builder->plan->scaling.amaxes, weight, ROLE_WEIGHT);
}

int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight)
{
    const struct plan *plan = builder->plan;
    return notes_magnitudes(plan) && plan->weights[weight].linear >= 0 ? scales_magnitude(builder, weight) : -1;
}

static void reduce_magnitudes(struct builder *builder, uint32_t axes)
{
    if (mesh_group_size(&builder->plan->mesh, axes) == 1) {
        return;
    }
    assembly_transfer(&builder->assembly, &(struct transfer){.kind = OP_ALL_REDUCE_MAXIMUM,
                                                             .role = "magnitude reduce",
                                                             .axes = axes,
                                                             .lane = LANE_GRADIENT_REDUCE,
                                                             .in   = -1,
                                                             .out  = builder->plan->scaling.amaxes,
                                                             .hold = -1});
}

// The slots of first_role .. end_role - 1, which share a format.
static void append_rescale(struct builder *builder, enum linear_role first_role, enum linear_role end_role)
{
    const struct plan   *plan    = builder->plan;
    struct plan_scaling  scaling = plan->scaling;
    int64_t              first = first_role * scaling.linears, slots = (end_role - first_role) * scaling.linears;
    struct op            op    = assembly_op(&builder->assembly, OP_RESCALE, "rescale");
    struct rescale_shape shape = {slots, plan->precision.magnitude_history, plan->precision.narrow_target[first_role]};
    assembly_operand(&op, RESCALE_AMAX, ACCESS_UPDATE,
                     assembly_part(&builder->assembly, "magnitudes", scaling.amaxes, first, DIMS(slots)));
    if (scaling.history >= 0) {
        assembly_operand(&op, RESCALE_HISTORY, ACCESS_UPDATE,
                         assembly_part(&builder->assembly, "magnitude history", scaling.history, first * shape.history,
                                       DIMS(slots, shape.history)));
    }
    assembly_operand(&op, RESCALE_SCALE, ACCESS_UPDATE,
                     assembly_part(&builder->assembly, "scales", scaling.scales, first, DIMS(slots)));
    assembly_operand(&op, RESCALE_FACTOR, ACCESS_WRITE,
                     assembly_part(&builder->assembly, "factors", scaling.factors, first, DIMS(slots)));
    op.shape.rescale = shape;
    assembly_append(&builder->assembly, &op);
}

void scales_reduce_magnitudes(struct builder *builder)
{
    if (is_delayed(builder->plan)) {
        reduce_magnitudes(builder, MESH_ALL_AXES);
    }
}

void scales_renew(struct builder *builder)
{
    if (is_delayed(builder->plan)) {
        append_rescale(builder, ROLE_INPUT, ROLE_GRADIENT);
        append_rescale(builder, ROLE_GRADIENT, LINEAR_ROLES);
    }
}

// BF16 weights have a scale per tp shard, so magnitudes are reduced only over the ranks that shard the optimizer. FP8
// weights have one scale on all ranks.
void scales_renew_of_weights(struct builder *builder)
{
    const struct plan *plan = builder->plan;
    reduce_magnitudes(builder, notes_magnitudes(plan) ? plan->units[0].update_axes : MESH_ALL_AXES);
    append_rescale(builder, ROLE_WEIGHT, ROLE_GRADIENT);
}
