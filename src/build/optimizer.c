// SPDX-License-Identifier: MIT
// Appends the end of a step: sums of losses and routing statistics, gradient norm, clipping, AdamW or Muon per FSDP
// unit, and the all-gather of updated weights.
#include "block.h"

#include "gswbench/linear.h"

static void append_clip(struct builder *builder, int32_t partials)
{
    struct plan *plan = builder->plan;
    struct op    op   = assembly_op(&builder->assembly, OP_CLIP, "clip");
    op.shape.elements =
        (struct elements_shape){.elements = plan->tensors[partials].elements, .limit = (float)plan->train.clip};
    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({CLIP_PARTIALS, partials}, {CLIP_NORM, plan->gradient_norm}, {CLIP_SCALE, plan->clip_scale}));
}

static uint32_t norm_axes(const struct plan *plan)
{
    uint32_t update_axes = plan->is_zero ? mesh_replica_axes(&plan->mesh, false) : mesh_shard_axes(&plan->mesh, false);
    return tp_job_axes(plan,
                       update_axes | plan->mesh.owner_axes | axis_sharing(AXIS_SHARES_MATRICES | AXIS_SHARES_LAYERS));
}

// Returns the part of a tensor that `slice` selects. Returns -1 if `tensor` is -1.
static int32_t slice_of(struct builder *builder, int32_t tensor, struct plan_slice slice)
{
    if (tensor < 0 || slice.elements == builder->plan->tensors[tensor].elements) {
        return tensor;
    }
    return assembly_part(&builder->assembly, builder->plan->tensors[tensor].name, tensor, slice.first,
                         DIMS(slice.elements));
}

// Returns the next range of elements, at `from` or later, whose squares this rank adds to the gradient norm. An element
// that is replicated over tp counts only on the first of the ranks that have it.
static struct plan_slice counted_slice(const struct plan *plan, const struct plan_unit *unit, int64_t from)
{
    struct plan_slice slice = {from, 0};
    int64_t           last = unit->updated.first + unit->updated.elements, end = last;
    for (int32_t i = 0; i < unit->weight_count && end == last; i++) {
        const struct weight *weight = &plan->weights[unit->first_weight + i];
        int64_t              next   = i + 1 < unit->weight_count ? weight[1].first : unit->elements;
        for (int32_t j = 0; j < weight->part_count && end == last; j++) {
            bool    is_end = j + 1 == weight->part_count;
            int64_t begin  = weight->first + weight->part[j].offset;
            int64_t after  = is_end ? next : weight->first + weight->part[j + 1].offset;
            if (after <= slice.first || mesh_group_index(&plan->mesh, plan->rank, weight->part[j].replica_axes) == 0) {
                continue;
            }
            if (begin <= slice.first) {
                slice.first = after;
            } else {
                end = begin < last ? begin : last;
            }
        }
    }
    slice.elements = end > slice.first ? end - slice.first : 0;
    return slice;
}

// Appends the sum of squares of an FSDP unit's gradients. If data-parallel replicas have the same gradients, only the
// first replica's sum counts. The others write the same sum to an unused tensor, so that their plans have the same
// dependencies, and add 0 to the norm.
static void append_square_sum(struct builder *builder, int32_t index, int32_t partial)
{
    const struct plan      *plan         = builder->plan;
    const struct plan_unit *unit         = &plan->units[index];
    uint32_t                others       = unit->update_axes | (unit->is_experts ? plan->mesh.owner_axes : 0);
    uint32_t                replica_axes = norm_axes(plan) & axis_sharing(AXIS_SHARES_TOKENS) & ~others;
    bool                    counts       = mesh_group_index(&plan->mesh, plan->rank, replica_axes) == 0;
    int32_t           out = partial, gradient = unit->updated.elements > 0 ? unit_updated_gradient(builder, index) : -1;
    struct plan_slice slice      = counted_slice(plan, unit, unit->updated.first);
    bool              is_counted = slice.elements > 0 && counts;
    if (slice.elements > 0 && !counts) {
        out = assembly_tensor(&builder->assembly, "square sum of a replica", STORAGE_ACTIVATION, FORMAT_F32, DIMS(1));
    }
    for (bool adds = false; slice.elements > 0; adds = true) {
        struct op op   = assembly_op(&builder->assembly, OP_SQUARE_SUM, "gradient norm");
        op.accumulates = adds;
        assembly_operand(
            &op, SQUARE_SUM_IN,
            slice_of(builder, gradient, (struct plan_slice){slice.first - unit->updated.first, slice.elements}));
        assembly_operand(&op, SQUARE_SUM_OUT, out);
        op.shape.elements.elements = slice.elements;
        assembly_append(&builder->assembly, &op);
        slice = counted_slice(plan, unit, slice.first + slice.elements);
    }
    if (!is_counted) {    // after the sums: on every rank, the last op here writes `partial`, which later ops read
        assembly_clear(&builder->assembly, "gradient norm", partial);
    }
}

// Returns whether the unit counts in the gradient norm. Of an embedding and its copy, only the original counts.
static bool counts_in_norm(const struct plan_unit *unit)
{
    return !unit->is_copy && !unit->is_frozen;
}

// Returns one tensor with a sum of squares per FSDP unit of the model, so that the gradient norm adds them in a fixed
// order. These units keep 0: units of other stages, the copy of the embedding, frozen units, units of repeated MTP
// modules, and units without weights, such as the linears of a layer that has only experts.
static int32_t append_square_sums(struct builder *builder)
{
    struct plan *plan = builder->plan;
    int32_t      partials =
        assembly_tensor(&builder->assembly, "squares", STORAGE_RESULT, FORMAT_F32, DIMS(unit_places(builder)));
    int64_t counted = 0;
    for (int32_t unit = 0; unit < plan->unit_count; unit++) {
        counted += counts_in_norm(&plan->units[unit]);
    }
    if (counted < unit_places(builder)) {
        assembly_clear(&builder->assembly, "gradient norm", partials);
    }
    for (int32_t unit = 0; unit < plan->unit_count; unit++) {
        if (!counts_in_norm(&plan->units[unit])) {
            continue;
        }
        builder->assembly.tag.layer = plan->tensors[plan->units[unit].gradient].layer;
        int32_t partial = assembly_part(&builder->assembly, "square sum", partials, plan->units[unit].place, DIMS(1));

        append_square_sum(builder, unit, partial);
    }
    builder->assembly.tag.layer = -1;
    return partials;
}

// Appends AdamW on a range of the elements that this rank updates. magnitude: tensor for the amax of the weights, from
// which FP8 scales are computed, or -1. An op with this tensor also runs before the first step, with a clip scale of
// NaN, which makes it skip the update.
static void append_adamw_slice(struct builder *builder, int32_t index, struct plan_slice slice, int32_t magnitude)
{
    struct plan            *plan     = builder->plan;
    const struct plan_unit *unit     = &plan->units[index];
    int32_t                 gradient = slice_of(builder, unit_updated_gradient(builder, index), slice);
    struct op               op       = assembly_op(&builder->assembly, OP_ADAMW, "adamw");
    op.is_initial                    = magnitude >= 0;
    assembly_operand(&op, ADAMW_HYPER, plan->hyper);
    assembly_operand(&op, ADAMW_SCALE, plan->clip_scale);
    assembly_operand(&op, ADAMW_GRADIENT, gradient);
    assembly_operand(&op, ADAMW_MASTER, slice_of(builder, unit->master, slice));
    assembly_operand(&op, ADAMW_FIRST, slice_of(builder, unit->first_moment, slice));
    assembly_operand(&op, ADAMW_SECOND, slice_of(builder, unit->second_moment, slice));
    if (!unit->is_low_precision) {
        assembly_operand(&op, ADAMW_WEIGHT, slice_of(builder, unit_updated_weight(builder, index), slice));
    }
    assembly_operand(&op, ADAMW_AMAX, magnitude);
    op.shape.elements.elements = slice.elements;
    assembly_append(&builder->assembly, &op);
}

// Appends one AdamW op for the unit, or one per linear weight if AdamW also records the weight's amax for FP8 scales.
// The range of an op extends to the next weight. It includes the padding between weights, which is zero.
static void append_adamw(struct builder *builder, int32_t index)
{
    const struct plan_unit *unit      = &builder->plan->units[index];
    int64_t                 total     = unit->updated.elements;
    int32_t                 magnitude = -1;
    struct plan_slice       slice     = {0, 0};
    for (int32_t i = 0; i <= unit->weight_count; i++) {
        int32_t weight = unit->first_weight + i;
        bool    is_end = i == unit->weight_count;
        int32_t next   = is_end ? -1 : scales_noted_magnitude(builder, weight);
        int64_t begin  = is_end ? total : builder->plan->weights[weight].first - unit->updated.first;
        begin          = begin < slice.first ? slice.first : begin < total ? begin : total;
        slice.elements = begin - slice.first;
        if (slice.elements > 0 && (is_end || next != magnitude)) {
            append_adamw_slice(builder, index, slice, magnitude);
            slice.first = begin;
        }
        magnitude = next;
    }
}

// Appends the ops that make the weights of the next step from the updated values. FP8 weights are quantized from master
// weights. With ZeRO-1, updated slices are all-gathered, unless the next forward pass gathers them (gathers_forward).
static void append_weights(struct builder *builder, int32_t index)
{
    const struct plan_unit *unit = &builder->plan->units[index];
    builder->assembly.is_initial = unit->is_low_precision;
    if (unit->is_low_precision) {
        quantize_update_weights(builder, index);
    }
    if (unit_updates_slice(builder, index) && !builder->gathers_forward) {
        unit_gather_updated(builder, index, -1);
    }
    builder->assembly.is_initial = false;
}

// Appends the optimizer of every unit. With current scaling, FP8 weights are quantized only after all units are
// updated, because their scales are computed together.
static void append_updates(struct builder *builder)
{
    const struct plan *plan   = builder->plan;
    bool               scales = plan->scaling.scales >= 0 && plan->precision.recipe == RECIPE_CURRENT;
    for (int32_t unit = 0; unit < plan->unit_count; unit++) {
        if (plan->units[unit].is_frozen) {
            continue;
        }
        builder->assembly.tag.layer = plan->tensors[plan->units[unit].gradient].layer;
        if (plan->units[unit].is_muon) {
            muon_append(builder, unit);
        } else {
            append_adamw(builder, unit);
        }
        if (!scales || !plan->units[unit].is_low_precision) {
            append_weights(builder, unit);
        }
    }
    if (scales) {
        quantize_scale_weights(builder);
    }
    for (int32_t unit = 0; unit < plan->unit_count && scales; unit++) {
        if (plan->units[unit].is_low_precision && !plan->units[unit].is_frozen) {
            builder->assembly.tag.layer = plan->tensors[plan->units[unit].gradient].layer;
            append_weights(builder, unit);
        }
    }
    builder->assembly.tag.layer = -1;
}

static void reduce_scalars(struct builder *builder, const char *role, uint32_t axes, int32_t tensor)
{
    if (mesh_group_size(&builder->plan->mesh, axes) > 1) {
        collect(builder, &(struct communication){OP_ALL_REDUCE, role, .axes = axes, .stream = STREAM_GRADIENT_REDUCE,
                                                 .in = -1, .out = tensor, .hold = -1});
    }
}

static void append_loss(struct builder *builder, int32_t loss)
{
    if (builder->plan->tensors[loss].first_op < 0) {
        assembly_clear(&builder->assembly, "loss", loss);    // only the last stage has a loss; other stages add 0
    }
    reduce_scalars(builder, "loss reduce", tp_loss_axes(builder->plan), loss);
}

// With a tied head or MTP, the first and last pipeline stage both have the embedding table. They exchange their
// gradients of the table, and each adds the received gradient. The channel number comes after the channels for
// activations.
static void add_tied_gradient(struct builder *builder, int32_t unit)
{
    struct plan *plan     = builder->plan;
    int32_t      gradient = unit_updated_gradient(builder, unit);
    int32_t other = assembly_tensor(&builder->assembly, "tied gradient", STORAGE_ACTIVATION, plan->precision.gradient,
                                    DIMS(plan->units[unit].updated.elements));
    struct communication send    = {.kind    = OP_SEND,
                                    .role    = "tied gradient send",
                                    .axes    = 1u << AXIS_PP,
                                    .stream  = STREAM_PIPELINE_SEND,
                                    .in      = gradient,
                                    .out     = -1,
                                    .hold    = -1,
                                    .peer    = (int32_t)(plan->units[unit].is_copy ? 0 : plan->mesh.size[AXIS_PP] - 1),
                                    .channel = (int32_t)(plan->assignment.chunks * SCHEDULE_PASSES)};
    struct communication receive = send;
    receive.kind                 = OP_RECEIVE;
    receive.role                 = "tied gradient receive";
    receive.stream               = STREAM_PIPELINE_RECEIVE;
    receive.in                   = -1;
    receive.out                  = other;
    collect(builder, &send);
    collect(builder, &receive);
    assembly_cast(&builder->assembly, "tied gradient sum", other, gradient, true);
}

void optimizer_append(struct builder *builder)
{
    struct plan *plan = builder->plan;
    builder->assembly.tag =
        (struct op_tag){.phase = PHASE_REDUCE, .part = PART_STEP, .layer = -1, .chunk = -1, .microbatch = -1};
    append_loss(builder, plan->loss);
    if (plan->prediction_loss >= 0) {
        append_loss(builder, plan->prediction_loss);
    }
    if (plan->routing >= 0) {
        reduce_scalars(builder, "routing reduce",
                       axis_sharing(AXIS_SHARES_TOKENS | AXIS_SHARES_LAYERS) | experts_row_axes(builder),
                       plan->routing);
    }

    scales_reduce_magnitudes(builder);
    for (int32_t unit = 0; unit < plan->unit_count; unit++) {
        if (pipeline_copies_embedding(plan) && plan->units[unit].place == 0 && !plan->units[unit].is_frozen) {
            add_tied_gradient(builder, unit);
        }
    }
    builder->assembly.tag.phase = PHASE_OPTIMIZER;
    int32_t partials            = append_square_sums(builder);
    reduce_scalars(builder, "gradient norm reduce", norm_axes(plan), partials);
    append_clip(builder, partials);
    experts_append_balance(builder);
    scales_renew(builder);
    append_updates(builder);
}
