// SPDX-License-Identifier: MIT
// FP8 quantization for the GEMMs of linears.
#pragma once

#include "gswbench/builder.h"

// The FP8 version of a tensor [rows, columns], optionally transposed. One op makes both versions: the op that made the
// tensor if it can fuse quantization, else an OP_QUANTIZE, which is reused until the tensor changes.
int32_t      quantize_copy(struct builder *builder, int32_t tensor, int32_t weight, enum linear_role role,
                           bool is_transposed);
enum scaling quantize_scaling(const struct plan *plan, enum linear_role role);
void         quantize_drop_unread(struct builder *builder);    // call last: drops outputs that are only read in FP8
// FP8 weights: quantizes this rank's slice of a unit from its master weights. With current scaling,
// quantize_scale_weights comes first.
void quantize_update_weights(struct builder *builder, int32_t unit);
// Current scaling: computes scales of updated weights, from the magnitudes that AdamW found or, for FP8 weights,
// measured here.
void quantize_scale_weights(struct builder *builder);

// Persistent FP8 scales, for delayed scaling and for scales that ranks share.
void scales_declare(struct builder *builder);
// Whether a tensor of this role has a persistent scale (a slot).
bool    scales_have_slot(const struct plan *plan, enum linear_role role);
void    scales_add_slot(struct builder *builder, struct op *quantize, int32_t weight, enum linear_role role);
int32_t scales_inverse(const struct builder *builder, int32_t weight, enum linear_role role);
int32_t scales_magnitude(const struct builder *builder, int32_t weight);
// Where AdamW stores the largest magnitude of a weight; -1: nowhere.
int32_t scales_noted_magnitude(const struct builder *builder, int32_t weight);
// After the last use in a step: reduces magnitudes over all ranks, and computes the next scales from them.
void scales_reduce_magnitudes(struct builder *builder);
void scales_renew(struct builder *builder);
// Current scaling: computes scales of updated weights from their magnitudes.
void scales_renew_of_weights(struct builder *builder);
