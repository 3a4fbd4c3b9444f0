// SPDX-License-Identifier: MIT
// What rope and its gradient behind a norm of heads share.
#ifndef GSWBENCH_HOST_ROPE_H
#define GSWBENCH_HOST_ROPE_H

#include "internal.h"

// One head of one token. direction is 1, or -1 to rotate back. table is the position's (cosine, sine) pairs.
void rope_rotate(float *out, const float *in, const struct attention_shape *shape, const float *table, float direction);
// Where a head of the packed row lies in QUERY or KEY_VALUE.
int64_t rope_split_place(const struct attention_shape *shape, int64_t token, int64_t head);
// A head over its root mean square; returns what it was multiplied by.
float rope_normalise(float *out, const float *in, const struct attention_shape *shape);

op_run rope_norm_backward;

#endif
