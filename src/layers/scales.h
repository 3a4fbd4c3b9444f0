// SPDX-License-Identifier: MIT
// Persistent FP8 scales, for delayed scaling and for scales that ranks share.
#ifndef GSWBENCH_LAYERS_SCALES_H
#define GSWBENCH_LAYERS_SCALES_H

#include "builder.h"

void scales_declare(struct builder *builder);
// Whether a tensor of this role has a persistent scale (a slot).
bool    scales_have_slot(const struct plan *plan, enum linear_role role);
void    scales_add_slot(struct builder *builder, struct op *quantize, int32_t weight, enum linear_role role);
int32_t scales_factor(const struct builder *builder, int32_t weight, enum linear_role role);
int32_t scales_magnitude(const struct builder *builder, int32_t weight);
// Where AdamW stores the largest magnitude of a weight; -1: nowhere.
int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight);
// After the last use in a step: reduces magnitudes over all ranks, and computes the next scales from them.
void scales_reduce_magnitudes(struct builder *builder);
void scales_renew(struct builder *builder);
// Current scaling: computes scales of updated weights from their magnitudes.
void scales_renew_of_weights(struct builder *builder);

#endif
