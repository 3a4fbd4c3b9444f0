// SPDX-License-Identifier: MIT
// Appends the GEMMs of a linear layer, y [tokens, n] = x [tokens, k] W^T with W [n, k], and its data, weight and bias
// gradients. tp.c appends the collectives around them, quantize.c the ops that quantize their operands to FP8 or
// FP4.
#include "gswbench/linear.h"

// An input matrix of a GEMM, and its role in the linear layer: input, weight or output gradient.
struct gemm_input {
    int32_t          tensor;
    enum linear_role role;
};
// A GEMM c = a b of a linear layer.
struct gemm {
    const char       *role;
    int32_t           weight;    // the layer's matrix W, an index in plan->weights
    struct gemm_input a, b;
    int32_t           c;    // output tensor
    struct gemm_shape shape;
    bool              accumulates;    // adds to c
    bool              adds_bias;
};

static bool is_low_precision(const struct builder *builder, const struct gemm *gemm)
{
    bool makes_weight_gradient = gemm->a.role == ROLE_GRADIENT && gemm->b.role == ROLE_INPUT;
    return builder->plan->weights[gemm->weight].linear >= 0 &&
           (!makes_weight_gradient || builder->plan->precision.has_low_precision_weight_gradients);
}

// Sets an operand of a GEMM to the FP8 or FP4 copy of a tensor. GPUs read FP8 and FP4 operands along k: A as is and B
// transposed. For a GEMM that needs the other orientation, the operand is a transposed copy.
static void read_copy(struct builder *builder, struct op *op, int slot, int32_t weight, struct gemm_input input)
{
    bool     is_a       = slot == GEMM_A;
    int32_t *scaling    = is_a ? &op->shape.gemm.scaling_a : &op->shape.gemm.scaling_b;
    bool    *transposes = is_a ? &op->shape.gemm.transpose_a : &op->shape.gemm.transpose_b;
    int32_t  copy       = quantize_copy(builder, input.tensor, weight, input.role, *transposes == is_a);
    assembly_operand(op, slot, copy);
    assembly_operand(op, is_a ? GEMM_INVERSE_SCALE_A : GEMM_INVERSE_SCALE_B,
                     builder->assembly.usage[copy].inverse_scales);
    if (scaling_is_nv(quantize_scaling(builder->plan, input.role))) {
        assembly_operand(op, is_a ? GEMM_TENSOR_SCALE_A : GEMM_TENSOR_SCALE_B,
                         builder->assembly.usage[copy].tensor_scale);
    }
    *transposes = !is_a;
    *scaling    = (int32_t)quantize_scaling(builder->plan, input.role);
}

static void append_gemm(struct builder *builder, const struct gemm *gemm)
{
    struct op op   = assembly_op(&builder->assembly, OP_GEMM, gemm->role);
    op.tag.makes   = (uint8_t)(gemm->b.role == ROLE_INPUT      ? MAKES_WEIGHT_GRADIENT
                               : gemm->a.role == ROLE_GRADIENT ? MAKES_INPUT_GRADIENT
                                                               : MAKES_OUTPUT);
    op.shape.gemm  = gemm->shape;
    op.accumulates = gemm->accumulates;
    if (is_low_precision(builder, gemm)) {
        enum fast_sums fast = builder->plan->precision.fast_sums;
        op.sums_fast        = fast == FAST_SUMS_ALL || (fast == FAST_SUMS_FORWARD && gemm->a.role == ROLE_INPUT);
        read_copy(builder, &op, GEMM_A, gemm->weight, gemm->a);
        read_copy(builder, &op, GEMM_B, gemm->weight, gemm->b);
    } else {
        assembly_operand(&op, GEMM_A, gemm->a.tensor);
        assembly_operand(&op, GEMM_B, gemm->b.tensor);
    }
    assembly_operand(&op, GEMM_C, gemm->c);
    if (gemm->adds_bias) {
        const struct weight *weights = builder->plan->weights;
        assembly_operand(&op, GEMM_BIAS, weights[weights[gemm->weight].bias].tensor);
    }
    assembly_append(&builder->assembly, &op);
}

// Returns whether the weight is row-parallel, so that outputs are partial sums over tp.
static bool is_summed(const struct builder *builder, int32_t weight)
{
    const struct weight_part *part = &builder->plan->weights[weight].part[0];
    return part->local_columns < part->columns;
}

// Returns whether this rank adds the bias. If outputs are partial sums over tp, only the first tp rank adds it.
static bool adds_bias(const struct builder *builder, const struct linear *linear)
{
    const struct plan *plan     = builder->plan;
    bool               is_first = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP) == 0;
    return !linear->is_gradient && plan->weights[linear->weight].bias >= 0 &&
           (is_first || !is_summed(builder, linear->weight));
}

static int32_t weight_of(const struct builder *builder, const struct linear *linear)
{
    return builder->plan->weights[linear->weight].tensor;
}

int32_t linear_out(struct builder *builder, const struct linear *linear, int64_t rows)
{
    int32_t w = weight_of(builder, linear);
    return assembly_activation(&builder->assembly, linear->role,
                               DIMS(rows, builder->plan->tensors[w].dim[linear->is_gradient]));
}

int32_t linear_out_of(struct builder *builder, const struct linear *linear, int32_t x)
{
    const int64_t *dim = builder->plan->tensors[weight_of(builder, linear)].dim;
    return assembly_alike(&builder->assembly, linear->role, x, dim[linear->is_gradient]);
}

// The output of a linear. accumulates: the product is added to the tensor `out`. scale: factor of the product; 0: 1.
struct result {
    int32_t out;
    bool    accumulates;
    float   scale;
};

static void append_linear(struct builder *builder, const struct linear *linear, int32_t x, struct result result)
{
    int32_t        w   = weight_of(builder, linear);
    const int64_t *dim = builder->plan->tensors[w].dim;
    append_gemm(builder, &(struct gemm){.role        = linear->role,
                                        .weight      = linear->weight,
                                        .a           = {x, linear->is_gradient ? ROLE_GRADIENT : ROLE_INPUT},
                                        .b           = {w, ROLE_WEIGHT},
                                        .c           = result.out,
                                        .shape       = {.m           = assembly_rows(&builder->assembly, x),
                                                        .n           = dim[linear->is_gradient],
                                                        .k           = dim[!linear->is_gradient],
                                                        .transpose_b = !linear->is_gradient,
                                                        .scale       = result.scale},
                                        .accumulates = result.accumulates,
                                        .adds_bias   = adds_bias(builder, linear)});
}

void linear_append(struct builder *builder, const struct linear *linear, int32_t x, int32_t out, bool accumulates)
{
    append_linear(builder, linear, x, (struct result){.out = out, .accumulates = accumulates});
    adapter_append(builder, linear, x, out);
}

int32_t linear_gemm_scaled(struct builder *builder, const struct linear *linear, int32_t x, float scale)
{
    int32_t out = linear_out_of(builder, linear, x);
    append_linear(builder, linear, x, (struct result){.out = out, .scale = scale});
    return out;
}

int32_t linear_splittable(struct builder *builder, const struct linear *linear, int32_t x)
{
    const struct plan *plan = builder->plan;
    enum linear_role   role = linear->is_gradient ? ROLE_GRADIENT : ROLE_INPUT;
    // With a scale per row or block, the inverse scales of some rows are not contiguous. So only a tensor with a single
    // scale is quantized before it is split by rows.
    bool is_copied = plan->weights[linear->weight].linear >= 0 && quantize_scaling(plan, role) == SCALING_WHOLE;
    return is_copied ? quantize_copy(builder, x, linear->weight, role, false) : x;
}

int32_t linear_gemm(struct builder *builder, const struct linear *linear, int32_t x)
{
    int32_t out = linear_out_of(builder, linear, x);
    linear_append(builder, linear, x, out, false);
    return out;
}

int32_t linear_forward(struct builder *builder, const char *role, int32_t x, int32_t weight)
{
    return linear_gemm(builder, &(struct linear){.role = role, .weight = weight}, x);
}

int32_t linear_data_gradient(struct builder *builder, const char *role, int32_t dy, int32_t weight)
{
    return linear_gemm(builder, &(struct linear){.role = role, .weight = weight, .is_gradient = true}, dy);
}

// Appends the gradient of the bias. The bias of a row-parallel linear is replicated over tp. With sequence parallelism,
// its gradient is summed over tp later, so each rank sums only its own rows of dy.
static void append_bias_gradient(struct builder *builder, int32_t dy, int32_t weight)
{
    const struct plan *plan = builder->plan;
    int32_t            bias = plan->weights[weight].bias;
    if (bias < 0) {
        return;
    }
    if (is_summed(builder, weight) && tp_shares_rows(builder)) {
        int64_t rows = plan->tensors[dy].dim[0] / plan->mesh.size[AXIS_TP];
        dy =
            tensor_rows(builder, "own rows", dy, mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP) * rows, rows);
    }
    struct op op   = assembly_op(&builder->assembly, OP_COLUMN_SUM, "bias gradient");
    op.tag.makes   = MAKES_WEIGHT_GRADIENT;
    op.accumulates = gradient_accumulates(builder, bias);
    op.shape.rows =
        (struct rows_shape){.rows = assembly_rows(&builder->assembly, dy), .columns = plan->weights[bias].columns};
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({COLUMN_SUM_IN, dy}, {COLUMN_SUM_OUT, plan->weights[bias].gradient}));
}

void linear_weight_gradient(struct builder *builder, const char *role, int32_t dy, int32_t x, int32_t weight)
{
    if (weight_is_frozen(builder, weight)) {
        adapter_weight_gradients(builder, dy, x, weight);
        return;
    }
    if (builder->delays) {
        LIST_APPEND(builder->delayed, builder->delayed_count,
                    ((struct delayed){.kind            = DELAYED_GRADIENT,
                                      .tag             = builder->assembly.tag,
                                      .role            = role,
                                      .output_gradient = dy,
                                      .x               = x,
                                      .weight          = weight}));
        return;
    }
    int32_t        dw  = builder->plan->weights[weight].gradient;
    const int64_t *dim = builder->plan->tensors[dw].dim;
    append_gemm(
        builder,
        &(struct gemm){
            .role        = role,
            .weight      = weight,
            .a           = {dy, ROLE_GRADIENT},
            .b           = {x, ROLE_INPUT},
            .c           = dw,
            .shape       = {.m = dim[0], .n = dim[1], .k = assembly_rows(&builder->assembly, dy), .transpose_a = true},
            .accumulates = gradient_accumulates(builder, weight)});
    append_bias_gradient(builder, dy, weight);
}

void linear_append_delayed(struct builder *builder)
{
    int32_t microbatch = builder->assembly.tag.microbatch;
    for (; builder->delayed_done < builder->delayed_count; builder->delayed_done++) {
        struct delayed now = builder->delayed[builder->delayed_done];
        if (now.tag.microbatch != microbatch) {
            break;
        }
        builder->assembly.tag = now.tag;
        switch (now.kind) {
        case DELAYED_BEGIN:
            unit_resume_gradients(builder, &now);
            break;
        case DELAYED_GRADIENT:
            linear_weight_gradient(builder, now.role, now.output_gradient, now.x, now.weight);
            break;
        case DELAYED_END:
            unit_end_gradients(builder, now.unit);
            break;
        }
    }
}

bool gradient_accumulates(const struct builder *builder, int32_t weight)
{
    return builder->plan->tensors[builder->plan->weights[weight].gradient].first_op >= 0;
}
