// SPDX-License-Identifier: MIT
// Defines row widths and grids that the Mamba-2 kernels share. mamba.h has the layout of the rows.
#pragma once

#include "device.cuh"
#include "mamba.h"

namespace
{
__host__ __device__ inline int64_t inner_of(const mamba_sizes &sizes)
{
    return sizes.heads * sizes.head_dim;
}
__host__ __device__ inline int64_t channels_of(const mamba_sizes &sizes)
{
    return inner_of(sizes) + 2 * sizes.groups * sizes.state;
}
__host__ __device__ inline int64_t packed_of(const mamba_sizes &sizes)
{
    return inner_of(sizes) + channels_of(sizes) + sizes.heads;
}
__host__ __device__ inline int64_t tokens_of(const mamba_sizes &sizes)
{
    return sizes.batch * sizes.sequence;
}

// Grid of kernels that sum over tokens. Along x, one thread per column; along y, at most MAMBA_PARTS partial sums.
enum { MAMBA_PARTS = 64 };

inline int64_t parts_of(const mamba_sizes &sizes)
{
    return launch_minimum(tokens_of(sizes), MAMBA_PARTS);
}

inline dim3 column_grid(const mamba_sizes &sizes, int64_t columns)
{
    return dim3((uint32_t)launch_groups(columns, LAUNCH_THREADS), (uint32_t)parts_of(sizes));
}
}    // namespace
