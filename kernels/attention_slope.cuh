// SPDX-License-Identifier: MIT
// Scores that fall with the distance of a key from a query, by a slope of each head (ALiBi).
#ifndef GSWBENCH_KERNELS_ATTENTION_SLOPE_CUH
#define GSWBENCH_KERNELS_ATTENTION_SLOPE_CUH

#include "attention.h"
#include "gswbench/arithmetic.h"
#include "matrix.cuh"

namespace
{
// By how much a head's scores fall a position, before they are scaled.
template <bool has_slopes, typename Args> __device__ inline float slope_of(const Args &args, int64_t head)
{
    return has_slopes ? arithmetic_slope(args.slopes.first_head + head, args.slopes.heads) / args.shape.scale : 0.0f;
}

// Scores fall with the distance from a warp's first key to its first query, and of each key to each query.
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
