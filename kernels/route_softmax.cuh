// SPDX-License-Identifier: MIT
// The softmax of a token's router logits, which a warp computes.
#ifndef GSWBENCH_KERNELS_ROUTE_SOFTMAX_CUH
#define GSWBENCH_KERNELS_ROUTE_SOFTMAX_CUH

#include "gswbench/arithmetic.h"

#include "device.cuh"

namespace
{
// The softmax of a row, of which each lane computes what it needs: exp(x - maximum) * factor.
struct row_softmax {
    float maximum, factor;
};

__device__ inline row_softmax softmax_of(const float *logits, int64_t count)
{
    float maximum = -INFINITY, sum = 0;
    for (int64_t i = threadIdx.x % LAUNCH_WARP; i < count; i += LAUNCH_WARP) {
        maximum = fmaxf(maximum, logits[i]);
    }
    maximum = warp_maximum(maximum);
    for (int64_t i = threadIdx.x % LAUNCH_WARP; i < count; i += LAUNCH_WARP) {
        sum += arithmetic_exp(logits[i] - maximum);
    }
    return {maximum, 1.0f / warp_sum(sum)};
}

__device__ inline float probability(const row_softmax &row, float logit)
{
    return arithmetic_exp(logit - row.maximum) * row.factor;
}
}    // namespace

#endif
