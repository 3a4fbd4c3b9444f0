// SPDX-License-Identifier: MIT
// The layers of a model: their composition, parameters, FLOPs, and which of them have experts.
#pragma once

#include "gswbench/model.h"
#include "gswbench/train.h"

// Checks the sizes, combinations and layer pattern of [model].
status layers_check(const struct model_config *model);

// Checks that the layers have the outputs that [train] recompute_save names.
status layers_check_train(const struct model_config *model, const struct train_config *train);

// The number of layers with experts, and the layer number of the index-th of them.
int64_t layers_with_experts(const struct model_config *model);
int64_t layers_expert_layer(const struct model_config *model, int64_t index);

// Parameters without vocabulary padding. Active parameters count top_k experts per layer.
int64_t layers_parameters(const struct model_config *model);
int64_t layers_active_parameters(const struct model_config *model);

// Model FLOPs of one training step on one sequence, forward and backward. NaN for FLOPS_HARDWARE, and for
// FLOPS_PUBLISHED without a published table.
double layers_flops(const struct model_config *model, const struct published_config *published,
                    enum flop_convention convention, int64_t sequence);

// The fraction of these FLOPs that attention has.
double layers_attention_share(const struct model_config *model, const struct published_config *published,
                              enum flop_convention convention, int64_t sequence);
