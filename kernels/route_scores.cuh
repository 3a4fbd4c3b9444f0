// SPDX-License-Identifier: MIT
// Computes the router scores of a row with one warp.
#pragma once

#include "gswbench/arithmetic.h"

#include "device.cuh"

namespace
{
// Parameters of a row's scores, from which a lane computes the scores that it needs. Softmax: exp(x - maximum) *
// factor. Sigmoid: sigmoid(x), and sigmoid(x) * factor is the probability, because factor is 1 / sum of the sigmoids.
struct row_scores {
    float maximum, factor;
    bool  by_sigmoid;
};

__device__ inline float score(const row_scores &row, float logit)
{
    return row.by_sigmoid ? arithmetic_sigmoid(logit) : arithmetic_exp(logit - row.maximum) * row.factor;
}

__device__ inline float probability(const row_scores &row, float logit)
{
    return row.by_sigmoid ? score(row, logit) * row.factor : score(row, logit);
}

__device__ inline row_scores scores_of(const float *logits, int64_t count, bool by_sigmoid)
{
    float maximum = -INFINITY, sum = 0;
    for (int64_t i = threadIdx.x % LAUNCH_WARP; i < count; i += LAUNCH_WARP) {
        maximum = fmaxf(maximum, logits[i]);
    }
    maximum        = warp_maximum(maximum);
    row_scores row = {maximum, 1.0f, by_sigmoid};
    for (int64_t i = threadIdx.x % LAUNCH_WARP; i < count; i += LAUNCH_WARP) {
        sum += score(row, logits[i]);
    }
    row.factor = 1.0f / warp_sum(sum);
    return row;
}
}    // namespace
