// SPDX-License-Identifier: MIT
// Router scores of one row: scores from logits, top-k experts and gates.
#ifndef GSWBENCH_HOST_SCORES_H
#define GSWBENCH_HOST_SCORES_H

#include "internal.h"

// Writes the scores of a row to scores [experts]. Returns the factor that makes them sum to 1.
float scores_of(const struct routing_shape *shape, const float *logits, float *scores);
// Selects the top_k experts by score plus bias in descending order; ties go to the lower expert. bias may be NULL.
// space: [experts].
void scores_choose(const struct routing_shape *shape, const float *logits, const float *scores, const float *bias,
                   float *space, int32_t *experts);
// Indices of the largest values in descending order; ties go to the lower index.
void scores_find_largest(const float *values, int64_t count, int64_t wanted, int32_t *indices);
void scores_gates(const struct routing_shape *shape, const float *logits, const float *scores, const int32_t *experts,
                  float *gates);

// Auxiliary loss of a row: scales the product of its probabilities with its sequence's expert counts. With N rows, the
// fraction of choices is count / (top_k N), and the mean probability is the sum of probabilities / N.
double       scores_auxiliary_scale(const struct routing_shape *shape);
const float *scores_counts(const struct routing_shape *shape, const struct buffer *counts, int64_t own_row);

#endif
