// SPDX-License-Identifier: MIT
// Defines the layer kind of the MLP: fc1 (gate and up together), activation, fc2. Experts and shared experts use its
// functions. Also has the backward passes of row-parallel and column-parallel linears, which most layer kinds use.
// tokens: tokens of a microbatch on this rank.
#include "mlp.h"

#include "gswbench/linear.h"

enum { WEIGHT_FC1 = WEIGHT_OWN, WEIGHT_FC2 };
enum {
    VALUE_FC1 = VALUE_OWN,    // [tokens, ffn] or [tokens, 2 ffn]
    VALUE_S,                  // output of the activation [tokens, ffn]
};

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_fc1_a  = {"model.layers.%d.mlp.gate_up_proj.lora_A.weight", 2};
static const struct exported exported_gate_b = {"model.layers.%d.mlp.gate_proj.lora_B.weight", ADAPTER_NOT_DRAWN};
static const struct exported exported_up_b   = {"model.layers.%d.mlp.up_proj.lora_B.weight", ADAPTER_NOT_DRAWN};
static const struct exported exported_fc2_a  = {"model.layers.%d.mlp.down_proj.lora_A.weight", 3};
static const struct exported exported_fc2_b  = {"model.layers.%d.mlp.down_proj.lora_B.weight", ADAPTER_NOT_DRAWN};

static const struct mlp_names exported = {
    .gate = {"model.layers.%d.mlp.gate_proj.weight", 12},
    .up   = {"model.layers.%d.mlp.up_proj.weight", 13},
    .down = {"model.layers.%d.mlp.down_proj.weight", 14},

    .gate_bias = {"model.layers.%d.mlp.gate_proj.bias", 26},
    .up_bias   = {"model.layers.%d.mlp.up_proj.bias", 27},
    .down_bias = {"model.layers.%d.mlp.down_proj.bias", 28},

    .in_adapter  = {{"fc1 adapter A", "fc1 adapter B"}, &exported_fc1_a, {&exported_gate_b, &exported_up_b}},
    .out_adapter = {{"fc2 adapter A", "fc2 adapter B"}, &exported_fc2_a, {&exported_fc2_b}},
};

int64_t mlp_elements(const struct model_config *model, int64_t hidden, int64_t ffn)
{
    return (model_is_gated(model) ? 3 : 2) * hidden * ffn;
}

int64_t mlp_adapters(const struct model_config *model, int64_t ffn)
{
    return ffn == 0 ? 0
                    : model_adapter(model, LINEAR_KIND_FC1, model->hidden, (model_is_gated(model) ? 2 : 1) * ffn) +
                          model_adapter(model, LINEAR_KIND_FC2, ffn, model->hidden);
}

int64_t mlp_biases(const struct model_config *model, int64_t hidden, int64_t ffn)
{
    return model->mlp_bias && ffn > 0 ? (model_is_gated(model) ? 2 : 1) * ffn + hidden : 0;
}

// Returns the names of fc1's adapter. Its matrix B has parts for gate and up, or without a gate only for up.
static struct adapter_names in_adapter(const struct mlp_names *as, bool is_gated)
{
    struct adapter_names names = as->in_adapter;
    names.b[0]                 = is_gated ? names.b[0] : names.b[1];
    return names;
}

void mlp_declare(struct declarations *declarations, int32_t *fc1, int32_t *fc2, const struct mlp_weights *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;

    struct declaration *in =
        declare_linear(declarations, fc1, "fc1 weight", LINEAR_KIND_FC1, weights->linear + MLP_FC1);
    in->expert = weights->expert;
    if (model_is_gated(model)) {
        declare_rows(declarations, in, &weights->as->gate, weights->ffn, weights->hidden);
    }
    declare_rows(declarations, in, &weights->as->up, weights->ffn, weights->hidden);
    if (model->mlp_bias) {
        const struct exported *const names[] = {&weights->as->gate_bias, &weights->as->up_bias};
        declare_bias(declarations, "fc1 bias", model_is_gated(model) ? names : names + 1);
    }
    struct adapter_names adapter = in_adapter(weights->as, model_is_gated(model));
    declare_adapter(declarations, &adapter);
    struct declaration *out =
        declare_linear(declarations, fc2, "fc2 weight", LINEAR_KIND_FC2, weights->linear + MLP_FC2);
    out->expert = weights->expert;
    declare_columns(declarations, out, &weights->as->down, weights->hidden, weights->ffn);
    if (model->mlp_bias) {
        declare_bias(declarations, "fc2 bias", (const struct exported *const[]){&weights->as->down_bias});
    }
    declare_adapter(declarations, &weights->as->out_adapter);
}

static struct layer_count count(const struct model_config *model)
{
    int64_t matrices   = mlp_elements(model, model->hidden, model->ffn);
    int64_t adapters   = mlp_adapters(model, model->ffn);
    int64_t parameters = matrices + mlp_biases(model, model->hidden, model->ffn) + adapters;
    return (struct layer_count){.parameters = parameters,
                                .active     = parameters,
                                .multiplied = matrices,
                                .linears    = MLP_LINEARS,
                                .adapters   = adapters};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    mlp_declare(
        declarations, &weights[WEIGHT_FC1], &weights[WEIGHT_FC2],
        &(struct mlp_weights){&exported, .hidden = model->hidden, .ffn = model->ffn, .expert = -1, .linear = 0});
}

int32_t mlp_fc1(struct builder *builder, const struct mlp *mlp)
{
    return tp_gather_linear(builder, &(struct linear){.role = mlp->roles->fc1, .weight = mlp->fc1_weight},
                            mlp->roles->fc1_input, mlp->in, NULL);
}

int32_t mlp_fc2(struct builder *builder, const struct mlp *mlp)
{
    return tp_linear_reduce(builder, &(struct linear){.role = mlp->roles->fc2, .weight = mlp->fc2_weight},
                            mlp->roles->fc2_output, mlp->s, -1);
}

// The all-gather of the input overlaps with the data gradient GEMM, and the reduction of the data gradient with the
// weight gradient GEMM.
int32_t columns_backward(struct builder *builder, const struct columns_roles *roles, int32_t dy, int32_t x,
                         int32_t weight, bool is_first_trained)
{
    int32_t again = tp_gather_again(builder, roles->again, x, weight), dx = -1;
    if (!is_first_trained) {
        dx = tp_reduce(builder, roles->reduced, linear_data_gradient(builder, roles->data, dy, weight));
    }
    linear_weight_gradient(builder, roles->weight, dy, again, weight);
    return dx;
}

int32_t rows_backward(struct builder *builder, const struct rows_roles *roles, int32_t dy, int32_t x, int32_t weight,
                      bool is_first_trained)
{
    int32_t whole, dx = -1;
    if (is_first_trained) {
        whole = tp_gather(builder, roles->gathered, dy);
    } else {
        dx = tp_gather_linear(builder, &(struct linear){.role = roles->data, .weight = weight, .is_gradient = true},
                              roles->gathered, dy, &whole);
    }
    linear_weight_gradient(builder, roles->weight, whole, x, weight);
    return dx;
}

int32_t mlp_backward(struct builder *builder, const struct mlp *mlp, int32_t gradient)
{
    const struct mlp_roles *roles = mlp->roles;
    // Whether no weight before fc2 is trained.
    bool is_first_trained = mlp->is_first_trained && !adapter_exists(builder, mlp->fc1_weight);

    assembly_set_part(&builder->assembly, roles->part_fc2);
    int32_t ds = rows_backward(builder, &roles->fc2_backward, gradient, mlp->s, mlp->fc2_weight, is_first_trained);
    if (is_first_trained) {
        return -1;
    }
    assembly_set_part(&builder->assembly, roles->part_activation);
    int32_t dfc1 = activation_backward(builder, ds, mlp->fc1);
    assembly_set_part(&builder->assembly, roles->part_fc1);
    return columns_backward(builder, &roles->fc1_backward, dfc1, mlp->in, mlp->fc1_weight, mlp->is_first_trained);
}

static struct mlp mlp_of(const struct sublayer *sublayer)
{
    static const struct mlp_roles roles  = MLP_ROLES("", PART_);
    const int32_t                *values = sublayer->values->tensor, *weights = sublayer->weights;
    return (struct mlp){&roles,
                        weights[WEIGHT_FC1],
                        weights[WEIGHT_FC2],
                        .in               = values[VALUE_N],
                        .fc1              = values[VALUE_FC1],
                        .s                = values[VALUE_S],
                        .is_first_trained = sublayer->is_first_trained};
}

static void append_fc1(struct sublayer *sublayer)
{
    struct mlp mlp                      = mlp_of(sublayer);
    sublayer->values->tensor[VALUE_FC1] = mlp_fc1(sublayer->builder, &mlp);

    sublayer->builder->plan->tensors[sublayer->values->tensor[VALUE_FC1]].holds = TENSOR_FC1;
}

static void append_activation(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_S] = activation_forward(sublayer->builder, sublayer->values->tensor[VALUE_FC1]);
}

static void append_fc2(struct sublayer *sublayer)
{
    struct mlp mlp                      = mlp_of(sublayer);
    sublayer->values->tensor[VALUE_OUT] = mlp_fc2(sublayer->builder, &mlp);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct mlp mlp = mlp_of(sublayer);
    return mlp_backward(sublayer->builder, &mlp, gradient);
}

const struct norm_names mlp_norm =
    NORM_NAMES(PART_MLP_NORM, "mlp norm", "norm2", "layers.%d.post_attention_layernorm", 10);

// clang-format off
static const struct forward_step steps[] = {
    // append,           part,            reads,          makes,          saved_as,                modules
    { append_fc1,        PART_FC1,        BIT(VALUE_N),   BIT(VALUE_FC1), 1u << OUTPUT_FC1,        1u << MODULE_MLP },
    { append_activation, PART_ACTIVATION, BIT(VALUE_FC1), BIT(VALUE_S),   1u << OUTPUT_ACTIVATION, 1u << MODULE_MLP },
    { append_fc2,        PART_FC2,        BIT(VALUE_S),   BIT(VALUE_OUT), 1u << OUTPUT_FC2,        1u << MODULE_MLP },
    { .append = NULL },
};
// clang-format on

const struct layer_kind mlp_kind = {
    .name     = "mlp",
    .norm     = &mlp_norm,
    .declare  = declare,
    .steps    = steps,
    .needed   = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_FC1),
    .inputs   = {[LINEAR_KIND_FC1] = BIT(VALUE_N), [LINEAR_KIND_FC2] = BIT(VALUE_S)},
    .backward = {backward},
    .count    = count,
};

// Returns the activation op of an MLP. Gated activations read gate and up from one tensor.
static struct op activation_op(const struct builder *builder, enum op_kind kind, const char *role, int32_t in)
{
    const struct model_config *model   = &builder->plan->model;
    int64_t                    columns = builder->plan->tensors[in].dim[1];
    struct op                  op      = assembly_op(&builder->assembly, kind, role);
    op.shape.rows                      = (struct rows_shape){.rows    = assembly_rows(&builder->assembly, in),
                                                             .columns = model_is_gated(model) ? columns / 2 : columns,
                                                             .variant = (int32_t)model->activation};
    return op;
}

int32_t activation_forward(struct builder *builder, int32_t in)
{
    struct op op  = activation_op(builder, OP_ACTIVATION_FORWARD, "activation", in);
    int32_t   out = assembly_alike(&builder->assembly, "activation", in, op.shape.rows.columns);

    assembly_append_with(&builder->assembly, &op, SLOTS({ACTIVATION_IN, in}, {ACTIVATION_OUT, out}));
    return out;
}

int32_t activation_backward(struct builder *builder, int32_t gradient, int32_t in)
{
    struct op op   = activation_op(builder, OP_ACTIVATION_BACKWARD, "activation gradient", in);
    int32_t   d_in = assembly_alike(&builder->assembly, "fc1 gradient", in, builder->plan->tensors[in].dim[1]);

    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({ACTIVATION_GRADIENT_OUT, gradient}, {ACTIVATION_GRADIENT_IN_IN, in}, {ACTIVATION_GRADIENT_IN, d_in}));
    return d_in;
}
