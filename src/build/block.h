// SPDX-License-Identifier: MIT
// A block (layer, embedding, head or MTP module): its forward and backward pass, including recompute.
#ifndef GSWBENCH_BUILD_BLOCK_H
#define GSWBENCH_BUILD_BLOCK_H

#include "gswbench/layer_kind.h"

// Determines the sublayers of every block.
void block_describe_all(struct builder *builder);
// Declares the weights of this rank's chunks in units (weights.c).
void weights_declare(struct builder *builder);
// Number of blocks: embedding, all layers, head and MTP modules.
int64_t block_places(const struct model_config *model);
// Number of parts of each pass. All but the last end at an expert all-to-all.
int block_parts(const struct builder *builder, int64_t place);
// Appends one part of the forward pass. After the last part, returns the residual stream, or the normalised stream if
// the block ends it.
struct stream block_forward(struct builder *builder, int64_t place, struct stream in, int part);
// Appends one part of the backward pass. gradient: result of the previous part. The last part returns the gradient of
// the block's input. Expert gradients are reduced once complete, to overlap with the remaining parts.
int32_t block_backward(struct builder *builder, int64_t place, int32_t gradient, int part);
// Call around the backward pass. The end reduces the gradients that block_backward has not.
void block_begin_gradients(struct builder *builder, int64_t place);
void block_end_gradients(struct builder *builder, int64_t place);

#endif
