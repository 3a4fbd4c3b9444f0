// SPDX-License-Identifier: MIT
// A block of the model: its sublayers in order, and what is computed again before its backward pass.
#ifndef GSWBENCH_LAYERS_BLOCK_H
#define GSWBENCH_LAYERS_BLOCK_H

#include "kind.h"

// Says what each block of the model is made of.
void block_describe_all(struct builder *builder);
// The embedding, all layers, and the head before those that predict further tokens.
int64_t block_places(const struct model_config *model);
// Where a layer is among them.
int64_t block_place(const struct builder *builder, int64_t layer);
// How many parts its passes have: each but the last ends where tokens travel to experts or back.
int block_parts(const struct builder *builder, int64_t place);
// Adds what a block makes to the stream, or ends it: then it is what a layer behind the head reads. It has done so
// after the last part.
struct stream block_forward(struct builder *builder, int64_t place, struct stream in, int part);
// Takes what the part before returned, and returns after the last one the gradient of the residual stream at the
// block's entry. The gradients of a unit's weights are complete as soon as its ops are: the reduction of those of
// experts starts then, beside the rest.
int32_t block_backward(struct builder *builder, int64_t place, int32_t gradient, int part);
// Around the backward pass; the end reduces all but what block_backward has.
void block_begin_gradients(struct builder *builder, int64_t place);
void block_end_gradients(struct builder *builder, int64_t place);

#endif
