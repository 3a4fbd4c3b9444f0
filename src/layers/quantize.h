// SPDX-License-Identifier: MIT
// Copies in FP8, and their scales.
#ifndef GSWBENCH_LAYERS_QUANTIZE_H
#define GSWBENCH_LAYERS_QUANTIZE_H

#include "builder.h"

void quantize_declare(struct builder *builder);
// A tensor [rows, columns] as the GEMMs of a weight read it: in FP8, transposed or not; itself if it is that. One op
// makes both copies: the one that made the tensor, if it can, or one that is appended unless an earlier one still
// holds.
int32_t      quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                           bool is_transposed);
enum scaling quantize_scaling(const struct plan *plan, enum linear_role role);
void quantize_drop_unread(struct builder *builder);    // at the end: outputs of which only the fused copies are read
// After a step's last copy: magnitudes of all ranks to scales for the next step.
void quantize_reduce_magnitudes(struct builder *builder);
void quantize_rescale(struct builder *builder);
// Weights that are kept in FP8: what brings them back, and the copy of this rank's slice of a unit, made of its
// masters. Scaled by current values, all slices are measured before.
int32_t quantize_weight_factor(struct builder *builder, int32_t weight);
void    quantize_measure_weights(struct builder *builder);
void    quantize_update_weights(struct builder *builder, int32_t unit);

#endif
