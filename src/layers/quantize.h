// SPDX-License-Identifier: MIT
// Copies in FP8, and their scales.
#ifndef GSWBENCH_LAYERS_QUANTIZE_H
#define GSWBENCH_LAYERS_QUANTIZE_H

#include "builder.h"

// A tensor [rows, columns] as the GEMMs of a weight read it: in FP8, transposed or not; itself if it is that. One op
// makes both copies: the one that made the tensor, if it can, or one that is appended unless an earlier one still
// holds.
int32_t      quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                           bool is_transposed);
enum scaling quantize_scaling(const struct plan *plan, enum linear_role role);
void quantize_drop_unread(struct builder *builder);    // at the end: outputs of which only the fused copies are read
// Weights that are kept in FP8: the copy of this rank's slice of a unit, made of its masters. Scaled by current values,
// all slices are measured before.
void quantize_update_weights(struct builder *builder, int32_t unit);
// The scales of weights that were updated, by their current values: those that AdamW noted, or that are measured here.
void quantize_scale_weights(struct builder *builder);

#endif
