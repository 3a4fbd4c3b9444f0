// SPDX-License-Identifier: MIT
// After the backward pass: gradients summed over the replicas, their norm, clipping, AdamW, unit by unit.
#include "internal.h"

static uint32_t replica_axes(void)
{
    return 1u << AXIS_DP;
}

static void append_all_reduce(struct builder *builder, const char *role, int32_t tensor)
{
    struct op op = builder_op(builder, OP_ALL_REDUCE, role);
    op.lane      = LANE_GRADIENT_REDUCE;
    builder_operand(&op, TRANSFER_OUT, ACCESS_UPDATE, tensor);
    op.shape.transfer = (struct transfer_shape){.elements = builder->plan->tensors[tensor].elements,
                                                .group    = builder_group(builder, replica_axes()),
                                                .peer     = -1};
    builder_append(builder, &op);
}

static void append_cast(struct builder *builder, const char *role, int32_t from, int32_t to)
{
    struct op op = builder_op(builder, OP_CAST, role);
    builder_operand(&op, CAST_IN, ACCESS_READ, from);
    builder_operand(&op, CAST_OUT, ACCESS_WRITE, to);
    op.shape.elements.elements = builder->plan->tensors[from].elements;
    builder_append(builder, &op);
}

void gradient_reduce(struct builder *builder, int32_t unit)
{
    const struct plan *plan     = builder->plan;
    int32_t            gradient = builder->units[unit].gradient;
    struct op_tag      tag      = builder->tag;
    if (mesh_group_size(&plan->mesh, replica_axes()) == 1) {
        return;
    }
    builder->tag =
        (struct op_tag){.phase = PHASE_REDUCE, .layer = plan->tensors[gradient].layer, .chunk = -1, .microbatch = -1};
    if (plan->precision.reduce == plan->precision.gradient) {
        append_all_reduce(builder, "gradient reduce", gradient);
    } else {
        int32_t narrow = builder_tensor(builder, "reduced gradients", STORAGE_ACTIVATION, plan->precision.reduce,
                                        DIMS(builder->units[unit].elements));
        append_cast(builder, "gradient cast", gradient, narrow);
        append_all_reduce(builder, "gradient reduce", narrow);
        builder->units[unit].reduced = narrow;
    }
    builder->tag = tag;
}

static int32_t append_clip(struct builder *builder, int32_t partials)
{
    struct plan *plan  = builder->plan;
    int32_t      scale = builder_tensor(builder, "clip scale", STORAGE_RESULT, DTYPE_F32, DIMS(1));
    struct op    op    = builder_op(builder, OP_CLIP, "clip");
    builder_operand(&op, CLIP_PARTIALS, ACCESS_READ, partials);
    builder_operand(&op, CLIP_NORM, ACCESS_WRITE, plan->gradient_norm);
    builder_operand(&op, CLIP_SCALE, ACCESS_WRITE, scale);
    op.shape.elements = (struct elements_shape){.elements = builder->unit_count, .limit = (float)plan->train.clip};
    builder_append(builder, &op);
    return scale;
}

// One sum of squares a unit, side by side in one tensor, so that the norm adds them in unit order.
static int32_t append_square_sums(struct builder *builder)
{
    struct plan *plan     = builder->plan;
    int32_t      partials = builder_tensor(builder, "squares", STORAGE_RESULT, DTYPE_F32, DIMS(builder->unit_count));
    for (int32_t unit = 0; unit < builder->unit_count; unit++) {
        builder->tag.layer = plan->tensors[builder->units[unit].gradient].layer;
        int32_t partial    = builder_part(builder, "square sum", partials, unit, DIMS(1));

        struct op op = builder_op(builder, OP_SQUARE_SUM, "gradient norm");
        builder_operand(&op, SQUARE_SUM_IN, ACCESS_READ, builder->units[unit].gradient);
        builder_operand(&op, SQUARE_SUM_OUT, ACCESS_WRITE, partial);
        op.shape.elements.elements = builder->units[unit].elements;
        builder_append(builder, &op);
    }
    builder->tag.layer = -1;
    return partials;
}

static void append_adamw(struct builder *builder, const struct unit *unit, int32_t scale)
{
    struct op op = builder_op(builder, OP_ADAMW, "adamw");
    builder_operand(&op, ADAMW_HYPER, ACCESS_READ, builder->plan->hyper);
    builder_operand(&op, ADAMW_SCALE, ACCESS_READ, scale);
    builder_operand(&op, ADAMW_GRADIENT, ACCESS_READ, unit->gradient);
    if (unit->master >= 0) {
        builder_operand(&op, ADAMW_MASTER, ACCESS_UPDATE, unit->master);
    }
    builder_operand(&op, ADAMW_FIRST, ACCESS_UPDATE, unit->first);
    builder_operand(&op, ADAMW_SECOND, ACCESS_UPDATE, unit->second);
    builder_operand(&op, ADAMW_WEIGHT, unit->master >= 0 ? ACCESS_WRITE : ACCESS_UPDATE, unit->weight);
    op.shape.elements.elements = unit->elements;
    builder_append(builder, &op);
}

void optimizer_append(struct builder *builder)
{
    struct plan *plan = builder->plan;
    builder->tag      = (struct op_tag){.phase = PHASE_REDUCE, .layer = -1, .chunk = -1, .microbatch = -1};
    if (mesh_group_size(&plan->mesh, replica_axes()) > 1) {
        append_all_reduce(builder, "loss reduce", plan->loss);
    }
    for (int32_t unit = 0; unit < builder->unit_count; unit++) {
        if (builder->units[unit].reduced >= 0) {
            builder->tag.layer = plan->tensors[builder->units[unit].gradient].layer;
            append_cast(builder, "gradient cast", builder->units[unit].reduced, builder->units[unit].gradient);
        }
    }
    builder->tag  = (struct op_tag){.phase = PHASE_OPTIMIZER, .layer = -1, .chunk = -1, .microbatch = -1};
    int32_t scale = append_clip(builder, append_square_sums(builder));
    for (int32_t unit = 0; unit < builder->unit_count; unit++) {
        builder->tag.layer = plan->tensors[builder->units[unit].gradient].layer;
        append_adamw(builder, &builder->units[unit], scale);
    }
    builder->tag.layer = -1;
}
