// SPDX-License-Identifier: MIT
// The scores of a token's router logits, which a warp computes.
#ifndef GSWBENCH_KERNELS_ROUTE_SCORES_CUH
#define GSWBENCH_KERNELS_ROUTE_SCORES_CUH

#include "gswbench/arithmetic.h"

#include "device.cuh"

namespace
{
// Of a row, of which each lane computes what it needs: shares of exponentials, exp(x - maximum) * factor, or sigmoids,
// which are shares of their sum when they are multiplied by factor.
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

#endif
