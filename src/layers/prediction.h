// SPDX-License-Identifier: MIT
// Multi-token prediction (MTP): depth and targets of the current block.
#ifndef GSWBENCH_LAYERS_PREDICTION_H
#define GSWBENCH_LAYERS_PREDICTION_H

#include "gswbench/builder.h"

// MTP depth of the tag's layer: tokens after the next one; 0 for the model's own head.
int64_t prediction_depth(const struct builder *builder);
// Targets of a depth for the microbatch of the tag.
int32_t prediction_targets(const struct builder *builder, int64_t depth);

#endif
