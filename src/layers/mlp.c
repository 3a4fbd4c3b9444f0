// SPDX-License-Identifier: MIT
// The MLP: fc1 (gate and up together), activation, fc2.
#include "mlp.h"

#include "activation.h"
#include "tensor.h"

enum { WEIGHT_FC1 = WEIGHT_OWN, WEIGHT_FC2 };
enum {
    VALUE_FC1 = VALUE_OWN,    // [T, ffn] or [T, 2 ffn]
    VALUE_S,                  // after the activation [T, ffn]
};

static const struct mlp_names exported = {
    .gate = {"model.layers.%d.mlp.gate_proj.weight", 12},
    .up   = {"model.layers.%d.mlp.up_proj.weight", 13},
    .down = {"model.layers.%d.mlp.down_proj.weight", 14},
};

int64_t mlp_elements(const struct model_config *model, int64_t ffn)
{
    return (model_is_gated(model) ? 3 : 2) * model->hidden * ffn;
}

void mlp_declare(struct declarations *declarations, int32_t *fc1, int32_t *fc2, const struct mlp_names *as,
                 int64_t expert)
{
    const struct model_config *model  = &declarations->builder->plan->model;
    int64_t                    ffn    = expert < 0 ? model->ffn : model_expert_ffn(model);
    int64_t                    linear = expert < 0 ? 0 : expert * MLP_LINEARS;

    struct declaration *in = declare_linear(declarations, fc1, "fc1 weight", LINEAR_KIND_FC1, linear + MLP_FC1);
    in->expert             = expert;
    if (model_is_gated(model)) {
        declare_rows(declarations, in, &as->gate, ffn, model->hidden);
    }
    declare_rows(declarations, in, &as->up, ffn, model->hidden);
    struct declaration *out = declare_linear(declarations, fc2, "fc2 weight", LINEAR_KIND_FC2, linear + MLP_FC2);
    out->expert             = expert;
    declare_columns(declarations, out, &as->down, model->hidden, ffn);
}

static struct layer_count count(const struct model_config *model)
{
    int64_t all = mlp_elements(model, model->ffn);
    return (struct layer_count){.parameters = all, .active = all, .multiplied = all, .linears = MLP_LINEARS};
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    mlp_declare(declarations, &weights[WEIGHT_FC1], &weights[WEIGHT_FC2], &exported, -1);
}

static void append_fc1(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_FC1] =
        tensor_gather_linear(sublayer->builder, &(struct linear){"fc1", sublayer->weights[WEIGHT_FC1], false, false},
                             "fc1 input", sublayer->values->tensor[VALUE_N], NULL);
}

static void append_activation(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_S] = activation_forward(sublayer->builder, sublayer->values->tensor[VALUE_FC1]);
}

static void append_fc2(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_OUT] =
        tensor_linear_reduce(sublayer->builder, &(struct linear){"fc2", sublayer->weights[WEIGHT_FC2], false, false},
                             "fc2 output", sublayer->values->tensor[VALUE_S], -1);
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         fc1 = sublayer->weights[WEIGHT_FC1], fc2 = sublayer->weights[WEIGHT_FC2];

    int32_t whole;
    int32_t ds = tensor_gather_linear(builder, &(struct linear){"fc2 data gradient", fc2, true, false},
                                      "fc2 output gradient", gradient, &whole);
    linear_weight_gradient(builder, "fc2 weight gradient", whole, values[VALUE_S], fc2);
    int32_t dfc1 = activation_backward(builder, ds, values[VALUE_FC1]);
    // The input is gathered beside the data gradient, whose sum is made beside the weight gradient.
    int32_t in = tensor_gather(builder, "fc1 input again", values[VALUE_N]);
    int32_t dn = linear_data_gradient(builder, "fc1 data gradient", dfc1, fc1);
    dn         = tensor_reduce(builder, "fc1 input gradient", dn);
    linear_weight_gradient(builder, "fc1 weight gradient", dfc1, in, fc1);
    return dn;
}

const struct norm_names mlp_norm = {.forward         = "mlp norm",
                                    .backward        = "mlp norm gradient",
                                    .weight          = "norm2",
                                    .bias            = "norm2 bias",
                                    .exported_weight = {"model.layers.%d.post_attention_layernorm.weight", 10},
                                    .exported_bias   = {"model.layers.%d.post_attention_layernorm.bias", 11}};

// clang-format off
static const struct forward_step steps[] = {
    { append_fc1,        BIT(VALUE_N),   BIT(VALUE_FC1), 1u << OUTPUT_FC1 },
    { append_activation, BIT(VALUE_FC1), BIT(VALUE_S),   1u << OUTPUT_ACTIVATION },
    { append_fc2,        BIT(VALUE_S),   BIT(VALUE_OUT), 1u << OUTPUT_FC2 },
    { .append = NULL },
};
// clang-format on

const struct layer_kind mlp_kind = {
    .name     = "mlp",
    .norm     = &mlp_norm,
    .declare  = declare,
    .steps    = steps,
    .needed   = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) | BIT(VALUE_FC1) | BIT(VALUE_S),
    .backward = backward,
    .count    = count,
};
