// SPDX-License-Identifier: MIT
// RoPE helpers for the forward pass and for the backward pass with q and k norms.
#ifndef GSWBENCH_HOST_ROPE_H
#define GSWBENCH_HOST_ROPE_H

#include "internal.h"

// Rotates one head of one token; direction -1 rotates back. table holds (cosine, sine) pairs of the position.
void rope_rotate(float *out, const float *in, const struct attention_shape *shape, const float *table, float direction);
// Index of a packed head in QUERY or KEY_VALUE.
int64_t rope_split_place(const struct attention_shape *shape, int64_t token, int64_t head);
// RMS-normalises a head; returns 1 / rms.
float rope_normalise(float *out, const float *in, const struct attention_shape *shape);

op_run rope_norm_backward;

#endif
