// SPDX-License-Identifier: MIT
// FP8 quantization for the GEMMs of linears.
#ifndef GSWBENCH_LAYERS_QUANTIZE_H
#define GSWBENCH_LAYERS_QUANTIZE_H

#include "builder.h"

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

#endif
