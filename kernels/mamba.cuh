// SPDX-License-Identifier: MIT
// Defines the grids that the Mamba-2 kernels share.
#pragma once

#include "device.cuh"
#include "mamba.h"

namespace
{
__host__ __device__ inline int64_t tokens_of(const mamba_shape &shape)
{
    return shape.batch * shape.sequence;
}

// Grid of kernels that sum over tokens. Along x, one thread per column; along y, at most MAMBA_PARTS partial sums.
enum { MAMBA_PARTS = 64 };

inline int64_t parts_of(const mamba_shape &shape)
{
    return launch_minimum(tokens_of(shape), MAMBA_PARTS);
}

inline dim3 column_grid(const mamba_shape &shape, int64_t columns)
{
    return dim3((uint32_t)launch_groups(columns, LAUNCH_THREADS), (uint32_t)parts_of(shape));
}
}    // namespace
