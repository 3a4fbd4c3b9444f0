// SPDX-License-Identifier: MIT
// Appends the ops of shared experts: an MLP that every token passes, next to the routed experts.
//
// These ops overlap with the expert all-to-alls: fc1 follows the dispatch, fc2 follows the all-to-all of expert
// outputs, and the backward pass follows the all-to-all of output gradients. Models without shared experts append
// nothing.
#include "experts.h"
#include "mlp.h"

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_fc1_a  = {"model.layers.%d.mlp.shared_experts.gate_up_proj.lora_A.weight", 4};
static const struct exported exported_gate_b = {"model.layers.%d.mlp.shared_experts.gate_proj.lora_B.weight",
                                                ADAPTER_NOT_DRAWN};
static const struct exported exported_up_b   = {"model.layers.%d.mlp.shared_experts.up_proj.lora_B.weight",
                                                ADAPTER_NOT_DRAWN};
static const struct exported exported_fc2_a  = {"model.layers.%d.mlp.shared_experts.down_proj.lora_A.weight", 5};
static const struct exported exported_fc2_b  = {"model.layers.%d.mlp.shared_experts.down_proj.lora_B.weight",
                                                ADAPTER_NOT_DRAWN};

static const struct mlp_names exported = {
    .gate = {"model.layers.%d.mlp.shared_experts.gate_proj.weight", 18},
    .up   = {"model.layers.%d.mlp.shared_experts.up_proj.weight", 19},
    .down = {"model.layers.%d.mlp.shared_experts.down_proj.weight", 20},

    .gate_bias = {"model.layers.%d.mlp.shared_experts.gate_proj.bias", 30},
    .up_bias   = {"model.layers.%d.mlp.shared_experts.up_proj.bias", 31},
    .down_bias = {"model.layers.%d.mlp.shared_experts.down_proj.bias", 32},

    .in_adapter  = {{"shared fc1 adapter A", "shared fc1 adapter B"},
                    &exported_fc1_a,
                    {&exported_gate_b, &exported_up_b}},
    .out_adapter = {{"shared fc2 adapter A", "shared fc2 adapter B"}, &exported_fc2_a, {&exported_fc2_b}},
};

void experts_shared_declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    if (model->shared_ffn > 0) {
        mlp_declare(declarations, &weights[WEIGHT_SHARED_FC1], &weights[WEIGHT_SHARED_FC2],
                    &(struct mlp_weights){&exported, .hidden = model->hidden, .ffn = model->shared_ffn, .expert = -1,
                                          .linear = MLP_LINEARS * model->experts});
    }
}

bool experts_are_shared(const struct sublayer *sublayer)
{
    return sublayer->weights[WEIGHT_SHARED_FC1] >= 0;
}

static struct mlp mlp_of(const struct sublayer *sublayer)
{
    static const struct mlp_roles roles  = MLP_ROLES("shared ", PART_SHARED_);
    const int32_t                *values = sublayer->values->tensor, *weights = sublayer->weights;
    return (struct mlp){&roles,
                        weights[WEIGHT_SHARED_FC1],
                        weights[WEIGHT_SHARED_FC2],
                        .in  = values[VALUE_N],
                        .fc1 = values[VALUE_SHARED_FC1],
                        .s   = values[VALUE_SHARED_S]};
}

void experts_shared_append_fc1(struct sublayer *sublayer)
{
    if (experts_are_shared(sublayer)) {
        struct mlp mlp                             = mlp_of(sublayer);
        sublayer->values->tensor[VALUE_SHARED_FC1] = mlp_fc1(sublayer->builder, &mlp);
    }
}

void experts_shared_append_activation(struct sublayer *sublayer)
{
    if (experts_are_shared(sublayer)) {
        int32_t fc1                              = sublayer->values->tensor[VALUE_SHARED_FC1];
        sublayer->values->tensor[VALUE_SHARED_S] = activation_forward(sublayer->builder, fc1);
    }
}

int32_t experts_shared_append_fc2(struct sublayer *sublayer)
{
    struct mlp mlp = mlp_of(sublayer);

    assembly_set_part(&sublayer->builder->assembly, PART_SHARED_FC2);
    return experts_are_shared(sublayer) ? mlp_fc2(sublayer->builder, &mlp) : -1;
}

int32_t experts_shared_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct mlp mlp = mlp_of(sublayer);
    return experts_are_shared(sublayer) ? mlp_backward(sublayer->builder, &mlp, gradient) : -1;
}
