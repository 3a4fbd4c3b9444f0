// SPDX-License-Identifier: MIT
// Declares the embedding table and its ops, which the first stage, a tied head and MTP modules use, and the depth and
// targets of MTP modules.
#pragma once

#include "gswbench/layer_kind.h"
#include "gswbench/builder.h"

enum { WEIGHT_TABLE = WEIGHT_OWN, WEIGHT_POSITIONS };

int32_t embedding_table(const struct builder *builder);    // index in plan->weights; on the last stage, of its copy
// Append the lookup of embedding rows [S, hidden], and the gradient of the table from the gradient of these rows.
int32_t embedding_rows(struct builder *builder, int32_t tokens);
void    embedding_gradient(struct builder *builder, int32_t tokens, int32_t gradient);

// Multi-token prediction (MTP): depth and targets of the current block.

// MTP depth of the tag's layer: tokens after the next one; 0 for the model's own head.
int64_t prediction_depth(const struct builder *builder);
// Targets of a depth for the microbatch of the tag.
int32_t prediction_targets(const struct builder *builder, int64_t depth);
