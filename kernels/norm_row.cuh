// SPDX-License-Identifier: MIT
// Packets of a row that a thread of a norm kernel holds in registers.
#ifndef GSWBENCH_KERNELS_NORM_ROW_CUH
#define GSWBENCH_KERNELS_NORM_ROW_CUH

#include "norm.h"
#include "quantize.cuh"

namespace
{
constexpr int held = NORM_HELD / width;    // packets per thread

// First element and size of a thread's packet; is_here is false beyond the row.
struct place {
    int  at, count;
    bool is_here;
};

template <bool is_wide> __device__ inline place place_of(int i, int64_t columns)
{
    int thread = (int)threadIdx.x;
    asm volatile("" : "+r"(thread));    // forces recomputation: keeping the indices of all packets would take registers
    int at = (thread + i * (int)blockDim.x) * width;
    return {at, packet_elements<is_wide>(at, columns), at < columns};
}
}    // namespace

#endif
