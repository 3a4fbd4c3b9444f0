// SPDX-License-Identifier: MIT
// What MLPs and experts have in common: their norm and their two weights.
#ifndef GSWBENCH_LAYERS_MLP_H
#define GSWBENCH_LAYERS_MLP_H

#include "kind.h"

enum { MLP_FC1, MLP_FC2, MLP_LINEARS };

extern const struct norm_names mlp_norm;

struct mlp_names {
    struct exported gate, up, down;
};

// fc1 (gate and up together) and fc2 of a layer's MLP, or (expert >= 0) of an expert.
void    mlp_declare(struct declarations *declarations, int32_t *fc1, int32_t *fc2, const struct mlp_names *as,
                    int64_t expert);
int64_t mlp_elements(const struct model_config *model, int64_t ffn);    // of both

#endif
