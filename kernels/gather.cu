// SPDX-License-Identifier: MIT
// Gathers rows by index, for embeddings and MoE dispatch:
//
//   out[i] = multiplier * in[(index[i] - first) / divisor], or 0 if the index is out of range
//
// One thread block handles one row of out.
#include "device.cuh"
#include "route.h"

namespace
{
template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) gather_kernel(const struct gather_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        int64_t  index   = args.index[row] - args.first;
        bool     is_here = index >= 0 && index < args.count;
        const T *from    = (const T *)args.in + (is_here ? index / args.divisor : 0) * args.columns;
        T       *to      = (T *)args.out + row * args.columns;
#pragma unroll 4
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int count = packet_elements<is_wide>(at, args.columns);
            if (args.accumulates || args.multiplier != 1.0f) {
                float products[width] = {};
                if (is_here) {
                    load<is_wide>(products, from + at, count);
                }
                each([&](int i) { products[i] *= args.multiplier; });
                store_sum<is_wide>(to + at, products, count, args.accumulates);
                continue;
            }
            packet<T> values = {};
            if (is_here) {
                values = fetch<is_wide>(from + at, count);
            }
            put<is_wide>(to + at, values, count);
        }
    }
}
}    // namespace

int kernel_gather(const struct gather_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_packets(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->in, args->out));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(gather_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}
