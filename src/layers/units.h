// SPDX-License-Identifier: MIT
// Places of units; where a unit's weights and gradients are while a microbatch passes, and their transfers.
#ifndef GSWBENCH_LAYERS_UNITS_H
#define GSWBENCH_LAYERS_UNITS_H

#include "builder.h"

// How many units the model has; those of blocks have the blocks' places, and behind them come those of experts, by the
// layers that have any.
int64_t unit_places(const struct builder *builder);
int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer);
// A block's linears are a unit of their own where they are kept in FP8 and the rest of the block is not.
int64_t unit_place_of_linears(const struct builder *builder, int64_t layer);
// Elements, rounded up so that each of so many slices of them starts at a multiple of 16 bytes of the narrowest type.
int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices);
// From its place, elements and what they are; with the layer of the tag.
void unit_create(struct builder *builder, const struct plan_unit *described);
bool unit_is_sharded(const struct builder *builder, int32_t unit);
bool unit_has_replicas(const struct builder *builder, int32_t unit);
// Whether each microbatch's gradients are reduced, and added to what the rank keeps of their sum.
bool unit_reduces_each(const struct builder *builder, int32_t unit);
bool unit_updates_slice(const struct plan_unit *unit);    // the optimizer, of what the rank keeps
// Tags what is appended next as this unit's, in that phase; returns the tag to restore.
struct op_tag unit_enter(struct builder *builder, int32_t unit, enum phase phase);
// Makes the weights readable; gathers those of the next units in that direction (1 or -1) ahead of their use.
void unit_acquire(struct builder *builder, int32_t unit, int32_t direction);
void unit_leave(struct builder *builder, int32_t unit, bool stays);    // after it was acquired; whole weights may stay
void unit_release(struct builder *builder, int32_t unit);              // what stayed, unless another turn uses it
// Between these two, the gradients of the unit's weights are written. The end reduces them as far as the layout asks.
void unit_begin_gradients(struct builder *builder, int32_t unit);
void unit_end_gradients(struct builder *builder, int32_t unit);
void unit_settle_gradients(struct builder *builder);    // at a chunk's end: what transfers left goes to its place
// Points the unit's weights at parts of a tensor that holds its whole range; -1: they cannot be touched.
void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole);
void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole);
// What this rank's optimizer reads and writes.
int32_t unit_updated_gradient(struct builder *builder, int32_t unit);
int32_t unit_updated_weight(struct builder *builder, int32_t unit);
// Under ZeRO-1, updated slices to whole weights; not before the op hold has ended, or -1.
void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold);

#endif
