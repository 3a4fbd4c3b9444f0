// SPDX-License-Identifier: MIT
// Copies of tensors in FP8 for the products of linears, as they are and transposed, and the scales for them: each
// tensor's own, those that the magnitudes of steps before this one gave, or one for each part of a copy.
#include "internal.h"

static bool is_delayed(const struct plan *plan)
{
    return plan->precision.fp8_gemms != 0 && plan->precision.fp8_recipe == FP8_DELAYED;
}

void quantize_declare(struct builder *builder)
{
    struct plan *plan = builder->plan;
    plan->scaling     = (struct plan_scaling){.scales = -1, .factors = -1, .amaxes = -1, .history = -1};
    if (!is_delayed(plan)) {
        return;
    }
    struct plan_scaling *scaling = &plan->scaling;
    scaling->linears             = plan->model.layers * weights_linears(&plan->model);
    const int64_t *slots         = DIMS(FP8_ROLES * scaling->linears);
    scaling->scales              = builder_tensor(builder, "scales", STORAGE_OPTIMIZER, DTYPE_F32, slots);
    scaling->factors             = builder_tensor(builder, "factors", STORAGE_OPTIMIZER, DTYPE_F32, slots);
    scaling->amaxes              = builder_tensor(builder, "magnitudes", STORAGE_OPTIMIZER, DTYPE_F32, slots);
    scaling->history             = builder_tensor(builder, "magnitude history", STORAGE_OPTIMIZER, DTYPE_F32,
                                                  DIMS(FP8_ROLES * scaling->linears, plan->precision.fp8_history));
}

// What a slot of all linears' scales or the like holds.
static int32_t slot_of(struct builder *builder, const char *name, int32_t all, int32_t weight, enum fp8_role role)
{
    int64_t slot = role * builder->plan->scaling.linears + builder->plan->weights[weight].linear;
    return builder_part(builder, name, all, slot, DIMS(1));
}

enum fp8_scaling quantize_scaling(const struct plan *plan, enum fp8_role role)
{
    return plan->precision.fp8_recipe != FP8_BLOCK ? FP8_SCALING_WHOLE
           : role == FP8_WEIGHT                    ? FP8_SCALING_SQUARES
                                                   : FP8_SCALING_RUNS;
}

static int32_t append_quantize(struct builder *builder, int32_t tensor, int32_t weight, enum fp8_role role)
{
    struct plan               *plan    = builder->plan;
    const struct plan_scaling *delayed = &plan->scaling;
    enum fp8_scaling           scaling = quantize_scaling(plan, role);
    struct tensor              from    = plan->tensors[tensor];
    struct op                  op      = builder_op(builder, OP_QUANTIZE, from.name);
    builder_operand(&op, QUANTIZE_IN, ACCESS_READ, tensor);
    if (is_delayed(plan)) {
        builder_operand(&op, QUANTIZE_SCALE, ACCESS_READ, slot_of(builder, "scale", delayed->scales, weight, role));
        builder_operand(&op, QUANTIZE_AMAX, ACCESS_UPDATE,
                        slot_of(builder, "magnitude", delayed->amaxes, weight, role));
    } else if (scaling == FP8_SCALING_WHOLE) {
        const char *factor = arena_format(&plan->arena, "factor of %s", from.name);
        builder_operand(&op, QUANTIZE_FACTOR, ACCESS_WRITE,
                        builder_tensor(builder, factor, STORAGE_ACTIVATION, DTYPE_F32, DIMS(1)));
    }
    op.shape.quantize = (struct quantize_shape){from.dim[0], from.elements / from.dim[0], (int32_t)scaling};
    return builder_append(builder, &op);
}

// The factor of the copy in that slot; those of a copy that is scaled by parts are its own.
static int32_t factor_of(struct builder *builder, int32_t op, int slot, int32_t weight, enum fp8_role role)
{
    struct plan *plan = builder->plan;
    if (is_delayed(plan)) {
        return slot_of(builder, "factor", plan->scaling.factors, weight, role);
    }
    if (plan->ops[op].shape.quantize.scaling == FP8_SCALING_WHOLE) {
        return plan->ops[op].operand[QUANTIZE_FACTOR];
    }
    int         own     = slot == QUANTIZE_TRANSPOSED ? QUANTIZE_TRANSPOSED_FACTOR : QUANTIZE_FACTOR;
    const char *name    = arena_format(&plan->arena, "factors of %s", plan->tensors[plan->ops[op].operand[slot]].name);
    int64_t     count   = op_operand_elements(&plan->ops[op], own);
    int32_t     factors = builder_tensor(builder, name, STORAGE_ACTIVATION, DTYPE_F32, DIMS(count));
    builder_add_output(builder, op, own, factors);
    return factors;
}

static void add_copy(struct builder *builder, int32_t op, int slot, int32_t weight, enum fp8_role role)
{
    struct plan          *plan          = builder->plan;
    bool                  is_transposed = slot == QUANTIZE_TRANSPOSED;
    struct quantize_shape shape         = plan->ops[op].shape.quantize;
    enum dtype            format        = plan->precision.fp8_format[role];
    const int64_t        *dim  = is_transposed ? DIMS(shape.columns, shape.rows) : DIMS(shape.rows, shape.columns);
    const char           *name = arena_format(&plan->arena, "%s in %s%s", plan->ops[op].tag.role, dtype_name(format),
                                    is_transposed ? ", transposed" : "");
    int32_t               copy = builder_tensor(builder, name, STORAGE_ACTIVATION, format, dim);
    builder_add_output(builder, op, slot, copy);
    // Looking for it may append tensors, and move what is known of them.
    int32_t factor              = factor_of(builder, op, slot, weight, role);
    builder->usage[copy].factor = factor;
}

int32_t quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum fp8_role role, bool is_transposed)
{
    int     slot = is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT;
    int32_t op   = builder->usage[tensor].quantizer;
    if (dtype_is_fp8(builder->plan->tensors[tensor].dtype) && !is_transposed) {
        return tensor;
    }
    if (op < 0 || !builder_is_current(builder, op, tensor)) {
        op                               = append_quantize(builder, tensor, weight, role);
        builder->usage[tensor].quantizer = op;
    }
    if (builder->plan->ops[op].operand[slot] < 0) {
        add_copy(builder, op, slot, weight, role);
    }
    return builder->plan->ops[op].operand[slot];
}

void quantize_reduce_magnitudes(struct builder *builder)
{
    if (!is_delayed(builder->plan) || builder->plan->mesh.world == 1) {
        return;
    }
    builder_transfer(builder, &(struct transfer){.kind = OP_ALL_REDUCE_MAXIMUM,
                                                 .role = "magnitude reduce",
                                                 .axes = MESH_ALL_AXES,
                                                 .lane = LANE_GRADIENT_REDUCE,
                                                 .in   = -1,
                                                 .out  = builder->plan->scaling.amaxes,
                                                 .hold = -1});
}

// The slots of first_role .. end_role - 1, which have one format.
static void append_rescale(struct builder *builder, enum fp8_role first_role, enum fp8_role end_role)
{
    const struct plan   *plan    = builder->plan;
    struct plan_scaling  scaling = plan->scaling;
    int64_t              first = first_role * scaling.linears, slots = (end_role - first_role) * scaling.linears;
    struct op            op    = builder_op(builder, OP_RESCALE, "rescale");
    struct rescale_shape shape = {slots, plan->precision.fp8_history, plan->precision.fp8_target[first_role]};
    builder_operand(&op, RESCALE_AMAX, ACCESS_UPDATE,
                    builder_part(builder, "magnitudes", scaling.amaxes, first, DIMS(slots)));
    builder_operand(
        &op, RESCALE_HISTORY, ACCESS_UPDATE,
        builder_part(builder, "magnitude history", scaling.history, first * shape.history, DIMS(slots, shape.history)));
    builder_operand(&op, RESCALE_SCALE, ACCESS_UPDATE,
                    builder_part(builder, "scales", scaling.scales, first, DIMS(slots)));
    builder_operand(&op, RESCALE_FACTOR, ACCESS_WRITE,
                    builder_part(builder, "factors", scaling.factors, first, DIMS(slots)));
    op.shape.rescale = shape;
    builder_append(builder, &op);
}

void quantize_rescale(struct builder *builder)
{
    if (is_delayed(builder->plan)) {
        append_rescale(builder, FP8_INPUT, FP8_GRADIENT);
        append_rescale(builder, FP8_GRADIENT, FP8_ROLES);
    }
}
