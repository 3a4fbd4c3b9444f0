// SPDX-License-Identifier: MIT
// Declares the embedding table and its ops, which the first stage, a tied head and MTP modules use. Also declares the
// depth and the targets of MTP modules.
#pragma once

#include "gswbench/layer_kind.h"
#include "gswbench/builder.h"

enum { WEIGHT_TABLE = WEIGHT_OWN, WEIGHT_POSITIONS };

// Returns the table's index in plan->weights; on the last stage, the index of its copy.
int32_t embedding_table(const struct builder *builder);
// Append the lookup of embedding rows, and the gradient of the table from the gradient of these rows. Both have the
// shape [shard_tokens, hidden], where shard_tokens are the tokens of this rank's part of the residual stream.
int32_t embedding_rows(struct builder *builder, int32_t tokens);
void    embedding_gradient(struct builder *builder, int32_t tokens, int32_t gradient);

// Multi-token prediction (MTP): an MTP module of depth d predicts the token d positions after the next one.

// Returns the MTP depth of the current layer (assembly.tag). It is 0 for the model's own head.
int64_t prediction_depth(const struct builder *builder);
// Returns the tensor of target tokens of this MTP depth for the current microbatch (assembly.tag).
int32_t prediction_targets(const struct builder *builder, int64_t depth);
