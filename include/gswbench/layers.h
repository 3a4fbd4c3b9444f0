// SPDX-License-Identifier: MIT
// The layers of a model: what each is made of, and what follows from that: parameters, FLOPs, which layers have
// experts.
#ifndef GSWBENCH_LAYERS_H
#define GSWBENCH_LAYERS_H

#include "gswbench/model.h"
#include "gswbench/train.h"

// The rules of [model]: sizes, combinations, and the pattern of layers.
status layers_check(const struct model_config *model);

// Whether the layers have what [train] recompute_save says they keep.
status layers_check_train(const struct model_config *model, const struct train_config *train);

// How many layers have experts, and the number of the layer that is the index-th of them.
int64_t layers_with_experts(const struct model_config *model);
int64_t layers_expert_layer(const struct model_config *model, int64_t index);

// Parameters without vocabulary padding. Active: the experts that one token uses.
int64_t layers_parameters(const struct model_config *model);
int64_t layers_active_parameters(const struct model_config *model);

// Model FLOPs of one training step over one sequence (forward and backward). NaN for FLOPS_PUBLISHED without a
// published table, and for FLOPS_HARDWARE.
double layers_flops(const struct model_config *model, const struct published_config *published,
                    enum flop_convention convention, int64_t sequence);

// The share of attention in these FLOPs.
double layers_attention_share(const struct model_config *model, const struct published_config *published,
                              enum flop_convention convention, int64_t sequence);

#endif
