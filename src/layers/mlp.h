// SPDX-License-Identifier: MIT
// Declares the norm, weights, ops and activation that MLPs, experts and shared experts have in common.
#pragma once

#include "gswbench/layer_kind.h"
#include "gswbench/builder.h"

extern const struct norm_names mlp_norm;

struct mlp_names {
    struct exported gate, up, down;
    struct exported gate_bias, up_bias, down_bias;

    struct adapter_names in_adapter, out_adapter;    // without gate, in_adapter's first B is not used
};

// fc1 (gate and up together) and fc2 of an MLP, or of an expert if expert >= 0.
struct mlp_weights {
    const struct mlp_names *as;
    int64_t                 hidden, ffn, expert;
    int64_t                 linear;    // index of fc1 among the linears of the sublayer
};
void    mlp_declare(struct declarations *declarations, int32_t *fc1, int32_t *fc2, const struct mlp_weights *weights);
int64_t mlp_elements(const struct model_config *model, int64_t hidden, int64_t ffn);    // parameters of fc1 and fc2
int64_t mlp_adapters(const struct model_config *model, int64_t ffn);                    // parameters of their adapters
int64_t mlp_biases(const struct model_config *model, int64_t hidden, int64_t ffn);      // of their biases; 0: no biases

// Parts and names of an MLP's ops.
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

// An MLP on all tokens: weights and values.
struct mlp {
    const struct mlp_roles *roles;
    int32_t                 fc1_weight, fc2_weight;
    int32_t                 in, fc1, s;          // [S, hidden], [T, ffn] or [T, 2 ffn], [T, ffn]
    bool                    is_first_trained;    // the gradient of in is not needed
};
int32_t mlp_fc1(struct builder *builder, const struct mlp *mlp);
int32_t mlp_fc2(struct builder *builder, const struct mlp *mlp);
// Returns the gradient of the input, or -1 if it is not needed.
int32_t mlp_backward(struct builder *builder, const struct mlp *mlp, int32_t gradient);

int32_t activation_forward(struct builder *builder, int32_t in);
int32_t activation_backward(struct builder *builder, int32_t gradient, int32_t in);    // in: input of the forward pass
