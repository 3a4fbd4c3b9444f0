// SPDX-License-Identifier: MIT
// Fills arrays with normal values, an element a thread at a time.
#include "random.h"

#include "device.cuh"
#include "gswbench/random.h"

namespace
{
template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) fill_kernel(const struct random_fill_args args)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < args.elements; at += step) {
        narrow((T *)args.out + at, random_normal(args.key, (uint64_t)at));
    }
}
}    // namespace

int kernel_random_fill(const struct random_fill_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_items(args->elements, target->multiprocessors);
    return with_type(args->type,
                     [&](auto type) { return enqueue(fill_kernel<decltype(type)>, launch, 0, target, *args); });
}
