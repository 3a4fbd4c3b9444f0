// SPDX-License-Identifier: MIT
// What a router makes of the logits of a row: scores, which experts these choose, and gates.
#ifndef GSWBENCH_HOST_SCORES_H
#define GSWBENCH_HOST_SCORES_H

#include "internal.h"

// scores [experts] receives those of a row's logits. Returns by what they are multiplied to add up to one.
float scores_of(const struct routing_shape *shape, const float *logits, float *scores);
// The experts of the largest scores with their bias, which may be NULL, the largest first; of equal ones the lower
// expert. space: [experts].
void scores_choose(const struct routing_shape *shape, const float *logits, const float *scores, const float *bias,
                   float *space, int32_t *experts);
// The indices of the largest values, the largest first; of equal ones the first.
void scores_find_largest(const float *values, int64_t count, int64_t wanted, int32_t *indices);
void scores_gates(const struct routing_shape *shape, const float *logits, const float *scores, const int32_t *experts,
                  float *gates);

// What the auxiliary loss multiplies the product of a row's probabilities and its sequence's counts with: the share of
// the choices is count / (top_k N), the mean probability the sum / N.
double       scores_auxiliary_scale(const struct routing_shape *shape);
const float *scores_counts(const struct routing_shape *shape, const struct buffer *counts, int64_t own_row);

#endif
