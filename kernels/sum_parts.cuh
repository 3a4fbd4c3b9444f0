// SPDX-License-Identifier: MIT
// Adds the partial sums of thread blocks in an order that depends only on the number of blocks.
#pragma once

#include "device.cuh"

namespace
{
// to[kind] = sum over parts of sums [parts, kinds, columns]. kinds: 1 or 2; each has its own output, such as a weight
// and a bias gradient.
struct part_sums_args {
    const float *sums;
    void        *to[2];
    int64_t      parts, kinds, columns;
    bool         accumulates;
};

constexpr int shares = 32;    // warps of a block, all for the same 32 columns; each adds every 32nd part

template <typename T>
__global__ void __launch_bounds__(LAUNCH_WARP *shares) sum_kernel(const struct part_sums_args args)
{
    __shared__ float sums[shares][LAUNCH_WARP];
    int              lane = threadIdx.x % LAUNCH_WARP, own_share = threadIdx.x / LAUNCH_WARP;
    int64_t          groups = launch_groups(args.columns, LAUNCH_WARP);
    int64_t          kind = blockIdx.x / groups, column = blockIdx.x % groups * LAUNCH_WARP + lane;
    float            sum = 0;
    if (column < args.columns) {
#pragma unroll 8
        for (int64_t part = own_share; part < args.parts; part += shares) {
            sum += args.sums[(part * args.kinds + kind) * args.columns + column];
        }
    }
    sums[own_share][lane] = sum;
    __syncthreads();
    if (own_share == 0 && column < args.columns) {
        T *to = (T *)args.to[kind] + column;
        sum   = args.accumulates ? widen(*to) : 0.0f;
        for (int share = 0; share < shares; share++) {
            sum += sums[share][lane];
        }
        low_precision(to, sum);
    }
}

int enqueue_sum(const struct part_sums_args &args, enum format type, const struct kernel_target *target)
{
    struct launch launch = {(uint32_t)(args.kinds * launch_groups(args.columns, LAUNCH_WARP)), LAUNCH_WARP * shares};
    return with_type(type, [&](auto value) { return enqueue(sum_kernel<decltype(value)>, launch, 0, target, args); });
}

// Enqueues a sum of one kind with args->accumulates and args->gradient_type. error: result of the previous kernels; if
// it is not 0, returns it and enqueues nothing.
template <typename Args>
int enqueue_sum_after(int error, const Args *args, const float *sums, int64_t parts, int64_t columns, void *to,
                      const struct kernel_target *target)
{
    struct part_sums_args all = {sums, {to, NULL}, parts, 1, columns, args->accumulates};
    return error != 0 ? error : enqueue_sum(all, args->gradient_type, target);
}
}    // namespace
