// SPDX-License-Identifier: MIT
// How far ahead the block at hand predicts, and what it should have.
#ifndef GSWBENCH_LAYERS_PREDICTION_H
#define GSWBENCH_LAYERS_PREDICTION_H

#include "builder.h"

// By the layer of the tag: tokens behind the next one, 0 for the model's own head.
int64_t prediction_depth(const struct builder *builder);
// What a depth is to predict for the microbatch of the tag.
int32_t prediction_targets(const struct builder *builder, int64_t depth);

#endif
