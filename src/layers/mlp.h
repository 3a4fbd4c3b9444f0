// SPDX-License-Identifier: MIT
// Declares the norm, weights, ops and activation that MLPs, experts and shared experts have in common.
#pragma once

#include "gswbench/layer_kind.h"
#include "gswbench/builder.h"

extern const struct norm_names mlp_norm;

struct mlp_names {
    struct exported gate, up, down;
    struct exported gate_bias, up_bias, down_bias;

    // Adapters of fc1 and fc2. In models without a gate, in_adapter.b[0] (the gate's matrix B) is not used.
    struct adapter_names in_adapter, out_adapter;
};

// Describes the weights of an MLP (expert = -1) or of an expert: fc1 (gate and up together) and fc2.
struct mlp_weights {
    const struct mlp_names *as;
    int64_t                 hidden, ffn, expert;
    int64_t                 linear;    // index of fc1 among the linears of the sublayer
};
void mlp_declare(struct declarations *declarations, int32_t *fc1, int32_t *fc2, const struct mlp_weights *weights);
// Return the parameters of fc1 and fc2, of their adapters, and of their biases (0: the model has none).
int64_t mlp_elements(const struct model_config *model, int64_t hidden, int64_t ffn);
int64_t mlp_adapters(const struct model_config *model, int64_t ffn);
int64_t mlp_biases(const struct model_config *model, int64_t hidden, int64_t ffn);

// The parts of the model (op_tag.part) of an MLP's ops, and the names of the ops.
struct mlp_roles {
    enum model_part      part_fc1, part_activation, part_fc2;
    const char          *fc1, *fc1_input, *fc2, *fc2_output;
    struct rows_roles    fc2_backward;
    struct columns_roles fc1_backward;
};
#define MLP_ROLES(of, part)                                                                                            \
    {                                                                                                                  \
        .part_fc1 = part##FC1, .part_activation = part##ACTIVATION, .part_fc2 = part##FC2, .fc1 = of "fc1",            \
        .fc1_input = of "fc1 input", .fc2 = of "fc2", .fc2_output = of "fc2 output",                                   \
        .fc2_backward = {of "fc2 output gradient", of "fc2 data gradient", of "fc2 weight gradient"},                  \
        .fc1_backward = {                                                                                              \
            of "fc1 input again",                                                                                      \
            of "fc1 data gradient",                                                                                    \
            of "fc1 input gradient",                                                                                   \
            of "fc1 weight gradient"                                                                                   \
        }                                                                                                              \
    }

// The weights and activations of an MLP that all tokens pass. tokens: tokens of a microbatch on this rank;
// shard_tokens: its tokens in the residual stream, tokens / tp with sequence parallelism.
struct mlp {
    const struct mlp_roles *roles;
    int32_t                 fc1_weight, fc2_weight;
    int32_t in, fc1, s;       // in [shard_tokens, hidden]; fc1 [tokens, ffn] or [tokens, 2 ffn]; s, the activation's
                              // output [tokens, ffn]
    bool is_first_trained;    // the gradient of `in` is not needed
};
int32_t mlp_fc1(struct builder *builder, const struct mlp *mlp);
int32_t mlp_fc2(struct builder *builder, const struct mlp *mlp);
// Appends the backward pass. Returns the gradient of the MLP's input, or -1 if it is not needed.
int32_t mlp_backward(struct builder *builder, const struct mlp *mlp, int32_t gradient);

int32_t activation_forward(struct builder *builder, int32_t in);
int32_t activation_backward(struct builder *builder, int32_t gradient, int32_t in);    // in: input of the forward pass
