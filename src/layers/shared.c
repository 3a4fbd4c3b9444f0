// SPDX-License-Identifier: MIT
// Shared experts: an MLP that every token passes, next to the routed experts.
//
// Its ops overlap with the expert all-to-alls: fc1 follows the dispatch, fc2 the all-to-all of outputs, and the
// backward pass the all-to-all of output gradients. Models without shared experts append nothing.
#include "activation.h"
#include "experts.h"
#include "mlp.h"

static const struct mlp_names exported = {
    .gate = {"model.layers.%d.mlp.shared_experts.gate_proj.weight", 18},
    .up   = {"model.layers.%d.mlp.shared_experts.up_proj.weight", 19},
    .down = {"model.layers.%d.mlp.shared_experts.down_proj.weight", 20},

    .gate_bias = {"model.layers.%d.mlp.shared_experts.gate_proj.bias", 30},
    .up_bias   = {"model.layers.%d.mlp.shared_experts.up_proj.bias", 31},
    .down_bias = {"model.layers.%d.mlp.shared_experts.down_proj.bias", 32},
};

void shared_declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    if (model->shared_ffn > 0) {
        mlp_declare(declarations, &weights[WEIGHT_SHARED_FC1], &weights[WEIGHT_SHARED_FC2],
                    &(struct mlp_weights){&exported, model->shared_ffn, -1, MLP_LINEARS * model->experts});
    }
}

static bool is_there(const struct sublayer *sublayer)
{
    return sublayer->weights[WEIGHT_SHARED_FC1] >= 0;
}

static struct mlp mlp_of(const struct sublayer *sublayer)
{
    static const struct mlp_roles roles  = MLP_ROLES("shared ", PART_SHARED_);
    const int32_t                *values = sublayer->values->tensor, *weights = sublayer->weights;
    return (struct mlp){&roles,          weights[WEIGHT_SHARED_FC1], weights[WEIGHT_SHARED_FC2],
                        values[VALUE_N], values[VALUE_SHARED_FC1],   values[VALUE_SHARED_S]};
}

void shared_append_fc1(struct sublayer *sublayer)
{
    if (is_there(sublayer)) {
        struct mlp mlp                             = mlp_of(sublayer);
        sublayer->values->tensor[VALUE_SHARED_FC1] = mlp_fc1(sublayer->builder, &mlp);
    }
}

void shared_append_activation(struct sublayer *sublayer)
{
    if (is_there(sublayer)) {
        int32_t fc1                              = sublayer->values->tensor[VALUE_SHARED_FC1];
        sublayer->values->tensor[VALUE_SHARED_S] = activation_forward(sublayer->builder, fc1);
    }
}

int32_t shared_append_fc2(struct sublayer *sublayer)
{
    struct mlp mlp = mlp_of(sublayer);

    assembly_set_part(&sublayer->builder->assembly, PART_SHARED_FC2);
    return is_there(sublayer) ? mlp_fc2(sublayer->builder, &mlp) : -1;
}

int32_t shared_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct mlp mlp = mlp_of(sublayer);
    return is_there(sublayer) ? mlp_backward(sublayer->builder, &mlp, gradient) : -1;
}
