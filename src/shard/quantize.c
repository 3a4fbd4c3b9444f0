// SPDX-License-Identifier: MIT
// Appends the quantization of GEMM inputs to FP8 or FP4, as is and transposed. Scales are per tensor (current or
// delayed scaling) or per part of the tensor, such as a block of 32 numbers.
#include "gswbench/linear.h"

// One tensor has all FP8 scales that persist over steps: one entry per linear and role (input, weight or output
// gradient). A quantized tensor uses an entry if its scale is known before its values (delayed scaling), or if ranks
// must agree on the scale.

static bool is_delayed(const struct plan *plan)
{
    return plan->precision.low_precision_linears != 0 && plan->precision.recipe == RECIPE_DELAYED;
}

// Returns whether AdamW finds the largest magnitudes (amaxes) of updated weights, from which their scales are computed.
static bool notes_magnitudes(const struct plan *plan)
{
    return plan->precision.recipe == RECIPE_CURRENT && plan->precision.fuses_copies &&
           !plan->precision.has_low_precision_weights && !model_is_frozen(&plan->model);
}

// Returns whether tensors of this role (input, weight or output gradient) have a scale that persists over steps. Frozen
// FP8 weights have their scales in weight.stored instead.
static bool has_entry(const struct plan *plan, enum linear_role role)
{
    bool is_updated = plan->precision.has_low_precision_weights && !model_is_frozen(&plan->model);
    return is_delayed(plan) || (role == ROLE_WEIGHT && (is_updated || notes_magnitudes(plan)));
}

// Declares a tensor with an entry per linear and role. In plan->tensors, one part per entry follows it.
static int32_t declare_entries(struct builder *builder, const char *name, const char *entry_name)
{
    struct plan *plan    = builder->plan;
    int64_t      entries = LINEAR_ROLES * plan->scaling.linears;
    int32_t      all     = assembly_tensor(&builder->assembly, name, STORAGE_OPTIMIZER, FORMAT_F32, DIMS(entries));
    for (int64_t entry = 0, place = 0; entry < entries; entry++) {
        int64_t linear = entry % plan->scaling.linears;
        place          = linear == 0 ? 0 : place;
        while (linear >= builder->blocks[place].first_linear + builder->blocks[place].linears) {
            place++;
        }
        builder->assembly.tag.layer = (int16_t)builder->blocks[place].layer;
        assembly_part(&builder->assembly, entry_name, all, entry, DIMS(1));
    }
    builder->assembly.tag.layer = -1;
    return all;
}

static int32_t entry_of(const struct builder *builder, int32_t all, int32_t weight, enum linear_role role)
{
    const struct plan *plan = builder->plan;
    return all + 1 + (int32_t)(role * plan->scaling.linears + plan->weights[weight].linear);
}

void scales_declare(struct builder *builder)
{
    struct plan *plan = builder->plan;
    plan->scaling     = (struct plan_scaling){.scales = -1, .factors = -1, .amaxes = -1, .history = -1};
    if (!has_entry(plan, ROLE_WEIGHT)) {
        return;
    }
    struct plan_scaling *scaling = &plan->scaling;
    scaling->linears             = builder->linears;
    scaling->scales              = declare_entries(builder, "scales", "scale");
    scaling->factors             = declare_entries(builder, "factors", "factor");
    scaling->amaxes              = declare_entries(builder, "magnitudes", "magnitude");
    if (is_delayed(plan)) {
        scaling->history = assembly_tensor(&builder->assembly, "magnitude history", STORAGE_OPTIMIZER, FORMAT_F32,
                                           DIMS(LINEAR_ROLES * scaling->linears, plan->precision.magnitude_history));
    }
}

static void add_entry(struct builder *builder, struct op *quantize, int32_t weight, enum linear_role role)
{
    const struct plan_scaling *scaling = &builder->plan->scaling;
    assembly_operand(quantize, QUANTIZE_SCALE, entry_of(builder, scaling->scales, weight, role));
    if (is_delayed(builder->plan)) {
        assembly_operand(quantize, QUANTIZE_AMAX, entry_of(builder, scaling->amaxes, weight, role));
    }
}

static int32_t magnitude_entry(const struct builder *builder, int32_t weight)
{
    return entry_of(builder, builder->plan->scaling.amaxes, weight, ROLE_WEIGHT);
}

int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight)
{
    const struct plan *plan = builder->plan;
    return notes_magnitudes(plan) && plan->weights[weight].linear >= 0 ? magnitude_entry(builder, weight) : -1;
}

static void reduce_magnitudes(struct builder *builder, uint32_t axes)
{
    if (mesh_group_size(&builder->plan->mesh, axes) == 1) {
        return;
    }
    collect(builder, &(struct communication){OP_ALL_REDUCE_MAXIMUM, "magnitude reduce", .axes = axes,
                                             .stream = STREAM_GRADIENT_REDUCE, .in = -1,
                                             .out = builder->plan->scaling.amaxes, .hold = -1});
}

// Appends the op that computes new scales for the entries of roles first_role to end_role - 1, which have the same
// format.
static void append_rescale(struct builder *builder, enum linear_role first_role, enum linear_role end_role)
{
    const struct plan   *plan    = builder->plan;
    struct plan_scaling  scaling = plan->scaling;
    int64_t              first = first_role * scaling.linears, entries = (end_role - first_role) * scaling.linears;
    struct op            op    = assembly_op(&builder->assembly, OP_RESCALE, "rescale");
    struct rescale_shape shape = {entries, plan->precision.magnitude_history,
                                  plan->precision.low_precision_target[first_role]};
    assembly_operand(&op, RESCALE_AMAX,
                     assembly_part(&builder->assembly, "magnitudes", scaling.amaxes, first, DIMS(entries)));
    if (scaling.history >= 0) {
        assembly_operand(&op, RESCALE_HISTORY,
                         assembly_part(&builder->assembly, "magnitude history", scaling.history, first * shape.history,
                                       DIMS(entries, shape.history)));
    }
    assembly_operand(&op, RESCALE_SCALE,
                     assembly_part(&builder->assembly, "scales", scaling.scales, first, DIMS(entries)));
    assembly_operand(&op, RESCALE_FACTOR,
                     assembly_part(&builder->assembly, "factors", scaling.factors, first, DIMS(entries)));
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

enum scaling quantize_scaling(const struct plan *plan, enum linear_role role)
{
    enum scaling_recipe recipe    = plan->precision.recipe;
    bool                is_square = role == ROLE_WEIGHT && plan->precision.scales_squares;
    return recipe == RECIPE_MXFP8   ? SCALING_MX
           : recipe == RECIPE_NVFP4 ? (is_square ? SCALING_NV_SQUARE : SCALING_NV)
           : recipe == RECIPE_ROWS  ? SCALING_ROWS
           : recipe != RECIPE_BLOCK ? SCALING_WHOLE
           : role == ROLE_WEIGHT    ? SCALING_128X128
                                    : SCALING_1X128;
}

static uint8_t makes(enum linear_role role)
{
    return role == ROLE_INPUT ? MAKES_INPUT : role == ROLE_WEIGHT ? MAKES_WEIGHT : MAKES_OUTPUT_GRADIENT;
}

// Returns the op that makes the tensor if quantization is to be fused into it; else -1. Fusion is faster if all GEMMs
// of the linear then read only FP8, or if a separate op would read the tensor again to find the scale.
static int32_t find_maker(const struct builder *builder, const struct op *quantize)
{
    const struct plan *plan   = builder->plan;
    int32_t            tensor = quantize->operand[QUANTIZE_IN];
    int32_t            maker  = builder->assembly.usage[tensor].writer;
    bool               gains  = plan->precision.has_low_precision_weight_gradients || op_finds_scale(quantize);
    if (!plan->precision.fuses_copies || !gains || maker < 0) {
        return -1;
    }
    int output = op_fused_output((enum op_kind)plan->ops[maker].kind);
    return output >= 0 && plan->ops[maker].operand[output] == tensor ? maker : -1;
}

static int32_t fuse(struct builder *builder, int32_t maker, const struct op *quantize)
{
    builder->plan->ops[maker].fused_scaling = (uint8_t)quantize->shape.quantize.scaling;
    for (int slot = QUANTIZE_OUT; slot < quantize->operand_count; slot++) {
        if (quantize->operand[slot] >= 0) {
            assembly_add_operand(&builder->assembly, maker, OP_FUSED + slot, quantize->operand[slot]);
        }
    }
    return maker;
}

static int32_t append_quantize(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role)
{
    struct plan  *plan          = builder->plan;
    enum scaling  scaling       = quantize_scaling(plan, role);
    struct tensor from          = plan->tensors[tensor];
    struct op     op            = assembly_op(&builder->assembly, OP_QUANTIZE, from.name);
    bool          is_stochastic = role == ROLE_GRADIENT && plan->precision.rounds_gradients_stochastically;
    op.tag.makes                = makes(role);
    assembly_operand(&op, QUANTIZE_IN, tensor);
    if (has_entry(plan, role)) {
        add_entry(builder, &op, weight, role);
    } else if (scaling == SCALING_WHOLE) {
        const char *factor = arena_format(&plan->arena, "factor of %s", from.name);
        assembly_operand(&op, QUANTIZE_INVERSE_SCALE,
                         assembly_tensor(&builder->assembly, factor, STORAGE_ACTIVATION, FORMAT_F32, DIMS(1)));
    }
    op.shape.quantize = (struct quantize_shape){.rows          = assembly_rows(&builder->assembly, tensor),
                                                .columns       = from.elements / from.dim[0],
                                                .scaling       = (int32_t)scaling,
                                                .transforms    = plan->precision.transforms && role != ROLE_WEIGHT,
                                                .is_stochastic = is_stochastic,
                                                .draw          = is_stochastic ? plan->op_count : 0};
    if (is_stochastic) {
        assembly_operand(&op, QUANTIZE_HYPER, plan->hyper);
    }
    int32_t maker = find_maker(builder, &op);
    return maker >= 0 ? fuse(builder, maker, &op) : assembly_append(&builder->assembly, &op);
}

// Returns the op's slot for an operand of OP_QUANTIZE. An op with fused quantization has these operands from OP_FUSED
// on.
static int slot_in(const struct op *op, int slot)
{
    return op->kind == OP_QUANTIZE ? slot : OP_FUSED + slot;
}

// Returns the tensor with the inverse scales of a quantized copy. slot: QUANTIZE_OUT or QUANTIZE_TRANSPOSED. If blocks
// have scales, each copy has its own. If scales persist over steps, returns the inverse of the scale that the op
// applied: the scale of the first linear, if several linears have the same input.
static int32_t inverse_scales_of(struct builder *builder, int32_t op, int slot, enum linear_role role)
{
    struct plan *plan     = builder->plan;
    struct op    quantize = op_quantize_of(&plan->ops[op]);
    if (has_entry(plan, role)) {
        return plan->scaling.factors + quantize.operand[QUANTIZE_SCALE] - plan->scaling.scales;
    }
    if (quantize.shape.quantize.scaling == SCALING_WHOLE) {
        return quantize.operand[QUANTIZE_INVERSE_SCALE];
    }
    int         own  = slot == QUANTIZE_TRANSPOSED ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE;
    const char *name = arena_format(&plan->arena, "factors of %s", plan->tensors[quantize.operand[slot]].name);
    quantize.shape.quantize.rows = assembly_max_rows(&builder->assembly, quantize.operand[QUANTIZE_IN]);
    int64_t     count            = op_operand_elements(&quantize, own);
    enum format format           = scaling_format((enum scaling)quantize.shape.quantize.scaling);
    int32_t     factors          = assembly_tensor(&builder->assembly, name, STORAGE_ACTIVATION, format, DIMS(count));
    plan->tensors[factors].holds = role == ROLE_WEIGHT ? TENSOR_WEIGHT_COPY : TENSOR_OTHER;
    assembly_add_operand(&builder->assembly, op, slot_in(&plan->ops[op], own), factors);
    return factors;
}

// Returns the NVFP4 scale of the whole tensor, or -1 for other formats. Each copy (as is, transposed) has such a scale,
// with the same lifetime as the scales of its blocks.
static int32_t tensor_scale_of(struct builder *builder, int32_t op, int slot, enum linear_role role)
{
    struct plan *plan = builder->plan;
    if (!scaling_is_nv((enum scaling)plan->ops[op].shape.quantize.scaling)) {
        return -1;
    }
    int         own = slot == QUANTIZE_TRANSPOSED ? QUANTIZE_TRANSPOSED_TENSOR_SCALE : QUANTIZE_TENSOR_SCALE;
    const char *name =
        arena_format(&plan->arena, "tensor scale of %s", plan->tensors[plan->ops[op].operand[slot]].name);
    int32_t scale              = assembly_tensor(&builder->assembly, name, STORAGE_ACTIVATION, FORMAT_F32, DIMS(1));
    plan->tensors[scale].holds = role == ROLE_WEIGHT ? TENSOR_WEIGHT_COPY : TENSOR_OTHER;
    assembly_add_operand(&builder->assembly, op, own, scale);
    return scale;
}

static void add_copy(struct builder *builder, int32_t op, int slot, enum linear_role role)
{
    struct plan   *plan          = builder->plan;
    bool           is_transposed = slot == QUANTIZE_TRANSPOSED;
    struct op      quantize      = op_quantize_of(&plan->ops[op]);
    int32_t        from          = quantize.operand[QUANTIZE_IN];
    int64_t        rows = assembly_max_rows(&builder->assembly, from), columns = quantize.shape.quantize.columns;
    enum format    format = plan->precision.low_precision_format[role];
    const int64_t *dim    = is_transposed ? DIMS(columns, rows) : DIMS(rows, columns);
    const char    *name   = arena_format(&plan->arena, "%s in %s%s", plan->tensors[from].name, format_name(format),
                                    is_transposed ? ", transposed" : "");
    int32_t        copy   = assembly_tensor(&builder->assembly, name, STORAGE_ACTIVATION, format, dim);
    plan->tensors[copy].row_count       = plan->tensors[from].row_count;
    plan->tensors[copy].holds           = role == ROLE_WEIGHT ? TENSOR_WEIGHT_COPY : TENSOR_OTHER;
    plan->tensors[copy].has_rows_across = is_transposed && plan->tensors[from].row_count > 0;
    assembly_add_operand(&builder->assembly, op, slot_in(&plan->ops[op], slot), copy);
    // Both calls can reallocate the array assembly.usage, so they run before the assignments to it.
    int32_t inverse_scales                       = inverse_scales_of(builder, op, slot, role);
    int32_t tensor_scale                         = tensor_scale_of(builder, op, slot, role);
    builder->assembly.usage[copy].inverse_scales = inverse_scales;
    builder->assembly.usage[copy].tensor_scale   = tensor_scale;
}

// Returns the transpose of an FP8 tensor. Reuses the latest transpose if the tensor has not changed since.
static int32_t transpose(struct builder *builder, int32_t tensor, enum linear_role role)
{
    struct tensor from = builder->plan->tensors[tensor];
    int32_t       made = builder->assembly.usage[tensor].quantizer;
    if (made >= 0 && assembly_is_current(&builder->assembly, made, tensor)) {
        return builder->plan->ops[made].operand[TRANSPOSE_OUT];
    }
    const char *name = arena_format(&builder->plan->arena, "%s, transposed", from.name);
    int32_t     out =
        assembly_tensor(&builder->assembly, name, STORAGE_ACTIVATION, from.format, DIMS(from.dim[1], from.dim[0]));
    struct op op  = assembly_op(&builder->assembly, OP_TRANSPOSE, from.name);
    op.tag.makes  = makes(role);
    op.shape.rows = (struct rows_shape){.rows = from.dim[0], .columns = from.dim[1]};
    made          = assembly_append_with(&builder->assembly, &op, SLOTS({TRANSPOSE_IN, tensor}, {TRANSPOSE_OUT, out}));
    builder->assembly.usage[tensor].quantizer   = made;
    builder->assembly.usage[out].inverse_scales = builder->assembly.usage[tensor].inverse_scales;
    return out;
}

// Declares an output of `stored`, the op that quantizes a frozen weight, in the memory of the weights.
static void declare_stored(struct builder *builder, struct op *stored, int slot, const char *of, struct tensor shape)
{
    const char *name = arena_format(&builder->plan->arena, of, shape.name);
    assembly_operand(stored, slot, assembly_tensor(&builder->assembly, name, STORAGE_WEIGHT, shape.format, shape.dim));
    stored->access[slot] = ACCESS_WRITE;
}

// Declares the scales of a frozen weight that is stored quantized, or of its stored transpose.
static void declare_stored_scales(struct builder *builder, struct op *stored, bool is_transposed, const char *name)
{
    enum scaling scaling = (enum scaling)stored->shape.quantize.scaling;
    int          own     = is_transposed ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE;
    enum format  format  = scaling == SCALING_WHOLE ? FORMAT_F32 : scaling_format(scaling);
    int64_t      count   = op_operand_elements(stored, own);
    declare_stored(builder, stored, own, "factors of %s",
                   (struct tensor){.name = name, .format = format, .dim = {count}});
    if (scaling_is_nv(scaling)) {
        declare_stored(builder, stored, is_transposed ? QUANTIZE_TRANSPOSED_TENSOR_SCALE : QUANTIZE_TENSOR_SCALE,
                       "tensor scale of %s", (struct tensor){.name = name, .format = FORMAT_F32, .dim = {1}});
    }
}

void quantize_store(struct builder *builder, int32_t weight)
{
    struct plan   *plan             = builder->plan;
    struct weight *weights          = &plan->weights[weight];
    weights->stored                 = arena_allocate(&plan->arena, sizeof(*weights->stored));
    *weights->stored                = assembly_op(&builder->assembly, OP_QUANTIZE, weights->name);
    weights->stored->shape.quantize = (struct quantize_shape){
        .rows = weights->rows, .columns = weights->columns, .scaling = (int32_t)quantize_scaling(plan, ROLE_WEIGHT)};
    declare_stored_scales(builder, weights->stored, false, weights->name);
}

void quantize_point(struct builder *builder, int32_t weight)
{
    const struct weight *pointed = &builder->plan->weights[weight];
    struct usage        *usage   = &builder->assembly.usage[pointed->tensor];
    if (pointed->stored != NULL) {
        usage->inverse_scales = pointed->stored->operand[QUANTIZE_INVERSE_SCALE];
        usage->tensor_scale   = pointed->stored->operand[QUANTIZE_TENSOR_SCALE];
    } else {
        usage->inverse_scales = entry_of(builder, builder->plan->scaling.factors, weight, ROLE_WEIGHT);
    }
}

// Returns the transpose of a weight that is stored in FP8 or FP4. With a scale per tensor, each microbatch transposes
// the weight again. With scales per part, the transpose has different scales than the weight, so it is stored as well.
static int32_t transpose_stored(struct builder *builder, int32_t tensor, int32_t weight)
{
    struct plan  *plan   = builder->plan;
    struct op    *stored = plan->weights[weight].stored;
    struct op_tag tag    = builder->assembly.tag;
    struct tensor from   = plan->tensors[tensor];
    if (stored->shape.quantize.scaling == SCALING_WHOLE) {
        int32_t *made    = &builder->assembly.usage[tensor].quantizer;
        bool     is_kept = *made >= 0 && plan->ops[*made].tag.microbatch == tag.microbatch;
        *made            = is_kept ? *made : -1;    // keeping all transposes would double the memory of weights
        return transpose(builder, tensor, ROLE_WEIGHT);
    }
    if (stored->operand[QUANTIZE_TRANSPOSED] < 0) {
        builder->assembly.tag.microbatch = -1;
        declare_stored(builder, stored, QUANTIZE_TRANSPOSED, "%s, transposed",
                       (struct tensor){.name = from.name, .format = from.format, .dim = {from.dim[1], from.dim[0]}});
        declare_stored_scales(builder, stored, true, arena_format(&plan->arena, "%s, transposed", from.name));
        builder->assembly.tag = tag;
        struct usage *usage   = &builder->assembly.usage[stored->operand[QUANTIZE_TRANSPOSED]];
        usage->inverse_scales = stored->operand[QUANTIZE_TRANSPOSED_INVERSE_SCALE];
        usage->tensor_scale   = stored->operand[QUANTIZE_TRANSPOSED_TENSOR_SCALE];
    }
    return stored->operand[QUANTIZE_TRANSPOSED];
}

int32_t quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                      bool is_transposed)
{
    int     slot = is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT;
    int32_t op   = builder->assembly.usage[tensor].quantizer;
    if (role == ROLE_WEIGHT && builder->plan->weights[weight].stored != NULL) {
        return is_transposed ? transpose_stored(builder, tensor, weight) : tensor;
    }
    if (format_is_low_precision(builder->plan->tensors[tensor].format)) {
        return is_transposed ? transpose(builder, tensor, role) : tensor;
    }
    if (op < 0 || !assembly_is_current(&builder->assembly, op, tensor)) {
        op                                        = append_quantize(builder, tensor, weight, role);
        builder->assembly.usage[tensor].quantizer = op;
    }
    if (op_quantize_of(&builder->plan->ops[op]).operand[slot] < 0) {
        add_copy(builder, op, slot, role);
    }
    return op_quantize_of(&builder->plan->ops[op]).operand[slot];
}

void quantize_drop_unread(struct builder *builder)
{
    struct plan *plan = builder->plan;
    for (int32_t i = 0; i < plan->op_count; i++) {
        int     output = op_fused_output((enum op_kind)plan->ops[i].kind);
        int32_t tensor = output >= 0 && op_is_fused(&plan->ops[i]) ? plan->ops[i].operand[output] : -1;
        if (tensor >= 0 && assembly_is_unread(&builder->assembly, tensor)) {
            plan->ops[i].operand[output]   = -1;
            plan->ops[i].access[output]    = 0;
            plan->tensors[tensor].first_op = plan->tensors[tensor].last_op = -1;
        }
    }
}

// Returns the part of a weight that this rank's optimizer updates, in elements of the FSDP unit.
static struct plan_slice updated_slice(const struct plan_unit *unit, const struct weight *weight)
{
    int64_t begin = weight->first > unit->updated.first ? weight->first : unit->updated.first;
    int64_t end = weight->first + weight->rows * weight->columns, last = unit->updated.first + unit->updated.elements;
    return (struct plan_slice){begin, (end < last ? end : last) - begin};
}

static void append_magnitude(struct builder *builder, int32_t index, int32_t masters)
{
    struct op op               = assembly_op(&builder->assembly, OP_MAGNITUDE, builder->plan->weights[index].name);
    op.shape.elements.elements = builder->plan->tensors[masters].elements;
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({MAGNITUDE_IN, masters}, {MAGNITUDE_AMAX, magnitude_entry(builder, index)}));
}

static void append_update(struct builder *builder, int32_t index, int32_t masters, int32_t out)
{
    struct op op = assembly_op(&builder->assembly, OP_QUANTIZE, builder->plan->weights[index].name);
    op.tag.makes = MAKES_WEIGHT;
    assembly_operand(&op, QUANTIZE_IN, masters);
    assembly_operand(&op, QUANTIZE_OUT, out);
    add_entry(builder, &op, index, ROLE_WEIGHT);
    op.shape.quantize = (struct quantize_shape){.rows = 1, .columns = builder->plan->tensors[masters].elements};
    assembly_append(&builder->assembly, &op);
}

// For each weight in this rank's slice of a unit, appends the op that finds its largest magnitude (measures: true), or
// the op that quantizes it.
static void update_slices(struct builder *builder, int32_t index, bool measures)
{
    const struct plan_unit *unit = &builder->plan->units[index];
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weight_count; w++) {
        const struct weight *weight = &builder->plan->weights[w];
        struct plan_slice    slice  = updated_slice(unit, weight);
        if (slice.elements <= 0) {
            continue;
        }
        int32_t masters = assembly_part(&builder->assembly, weight->name, unit->master,
                                        slice.first - unit->updated.first, DIMS(slice.elements));
        if (measures) {
            append_magnitude(builder, w, masters);
        } else {
            int32_t out = assembly_part(&builder->assembly, weight->name, unit->weight, slice.first - unit->kept.first,
                                        DIMS(slice.elements));
            append_update(builder, w, masters, out);
        }
    }
}

void quantize_scale_weights(struct builder *builder)
{
    builder->assembly.is_initial = true;
    for (int32_t unit = 0; unit < builder->plan->unit_count; unit++) {
        if (builder->plan->units[unit].is_low_precision) {
            builder->assembly.tag.layer = builder->plan->tensors[builder->plan->units[unit].weight].layer;
            update_slices(builder, unit, true);
        }
    }
    builder->assembly.tag.layer = -1;
    // BF16 weights have a scale per tp shard, so magnitudes are reduced only over the ranks that shard the optimizer.
    // FP8 weights have one scale on all ranks.
    const struct plan *plan = builder->plan;
    reduce_magnitudes(builder, notes_magnitudes(plan) ? plan->units[0].update_axes : MESH_ALL_AXES);
    append_rescale(builder, ROLE_WEIGHT, ROLE_GRADIENT);
    builder->assembly.is_initial = false;
}

void quantize_update_weights(struct builder *builder, int32_t unit)
{
    update_slices(builder, unit, false);
}
