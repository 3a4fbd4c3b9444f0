// SPDX-License-Identifier: MIT
// FSDP units: gathering of weights, reduction of gradients, and the tensors that hold them.
#pragma once

#include "gswbench/builder.h"

// Number of units in the model. The unit of a block has the block's index; units of experts follow, one per layer with
// experts.
int64_t unit_places(const struct builder *builder);
int64_t unit_place_of_experts(const struct builder *builder, int64_t expert_layer);
// With FP8 weights, the linears of a block form a separate unit, because a unit has one format.
int64_t unit_place_of_linears(const struct builder *builder, int64_t layer);
// Rounds up elements so that each of this many slices starts at a multiple of 16 bytes in the format with the fewest
// bits.
int64_t unit_align(const struct plan *plan, int64_t elements, int64_t slices);
// Adds a unit with the given place, elements and flags, for the layer of the current tag.
void unit_create(struct builder *builder, const struct plan_unit *described);
// Whether gradients are reduced after each microbatch and accumulated in the rank's slice.
bool unit_reduces_each(const struct builder *builder, int32_t unit);
// Makes the weights available, and prefetches the next units in this direction (1 or -1; 0: no prefetch).
void unit_acquire(struct builder *builder, int32_t unit, int32_t direction);
void unit_leave(struct builder *builder, int32_t unit, bool stays);    // after unit_acquire; stays: keep gathered
                                                                       // weights
void unit_release(struct builder *builder, int32_t unit);              // drops gathered weights that no pipeline action
                                                                       // uses
// The unit's weight gradients are written between these calls. The end reduces them as the layout requires.
void unit_begin_gradients(struct builder *builder, int32_t unit);
void unit_end_gradients(struct builder *builder, int32_t unit);
void unit_settle_gradients(struct builder *builder);    // at the end of a chunk: adds or copies reduced gradients to
                                                        // the kept gradients
// Makes the unit's weights (gradients) parts of a tensor with all elements of the unit; -1: unavailable.
void unit_point_weights(struct builder *builder, int32_t unit, int32_t whole);
void unit_point_gradients(struct builder *builder, int32_t unit, int32_t whole);
// The tensors that this rank's optimizer reads and writes.
int32_t unit_updated_gradient(struct builder *builder, int32_t unit);
int32_t unit_updated_weight(struct builder *builder, int32_t unit);
// ZeRO-1: all-gathers the updated slices, not before op hold (or -1) has ended.
void unit_gather_updated(struct builder *builder, int32_t unit, int32_t hold);
