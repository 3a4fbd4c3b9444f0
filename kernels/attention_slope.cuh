// SPDX-License-Identifier: MIT
// ALiBi: subtracts slope * distance from the scores of each head.
#ifndef GSWBENCH_KERNELS_ATTENTION_SLOPE_CUH
#define GSWBENCH_KERNELS_ATTENTION_SLOPE_CUH

#include "attention.h"
#include "gswbench/arithmetic.h"
#include "matrix.cuh"

namespace
{
// Slope of a head, divided by the softmax scale because scores are scaled afterwards.
template <bool has_slopes, typename Args> __device__ inline float slope_of(const Args &args, int64_t head)
{
    return has_slopes ? arithmetic_slope(args.slopes.first_head + head, args.slopes.heads) / args.shape.scale : 0.0f;
}

// Adds the ALiBi bias. distance is from the warp's first key to its first query.
template <bool has_slopes, bool has_queries_as_rows, int sides, int columns>
__device__ inline void lean(float (&scores)[sides][columns][4], float slope, int64_t distance)
{
    if (has_slopes) {
        float step = has_queries_as_rows ? slope : -slope;
        float here = slope * (float)distance + step * (float)(matrix_row() - matrix_column());
#pragma unroll
        for (int i = 0; i < columns; i++) {
#pragma unroll
            for (int k = 0; k < 4 * sides; k++) {
                scores[k / 4][i][k % 4] -= here + step * (float)(k / 2 * 8 - i * 8 - k % 2);
            }
        }
    }
}
}    // namespace

#endif
