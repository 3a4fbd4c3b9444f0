// SPDX-License-Identifier: MIT
// Slots for the scales that ranks agree on, or that are known before the values are.
#ifndef GSWBENCH_LAYERS_SCALES_H
#define GSWBENCH_LAYERS_SCALES_H

#include "builder.h"

void scales_declare(struct builder *builder);
// Whether a tensor's scale is kept in a slot.
bool    scales_have_slot(const struct plan *plan, enum linear_role role);
void    scales_add_slot(struct builder *builder, struct op *quantize, int32_t weight, enum linear_role role);
int32_t scales_factor(const struct builder *builder, int32_t weight, enum linear_role role);
int32_t scales_magnitude(const struct builder *builder, int32_t weight);
// Where AdamW notes the largest magnitude of a weight that it writes; -1: nowhere.
int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight);
// After a step's last copy: magnitudes of all ranks to scales for the next step.
void scales_reduce_magnitudes(struct builder *builder);
void scales_renew(struct builder *builder);
// Scaled by current values: magnitudes of updated weights to their scales.
void scales_renew_of_weights(struct builder *builder);

#endif
