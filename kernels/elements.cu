// SPDX-License-Identifier: MIT
// Computes casts, sums of squares, gradient clipping and scaled sums of flat arrays. A thread handles eight elements at
// a time. For sums, each block writes a partial sum, and a single block then adds these in order.
#include "gswbench/arithmetic.h"

#include "elements.h"
#include "spread.cuh"

namespace
{
constexpr launch one_block = {1, LAUNCH_THREADS};

template <typename From, typename To, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) cast_kernel(const struct cast_args args)
{
    To *out = (To *)args.out;
    for (spread its(args.elements); its.is_here(); its.advance()) {
        packet<From> raw = fetch<is_wide>((const From *)args.in, its);
        float        values[width], before[width];
        if (args.accumulates) {
            load<is_wide>(before, out, its);
        }
        unpack(values, raw);
        each([&](int i) { values[i] = args.accumulates ? values[i] + before[i] : values[i]; });
        store<is_wide>(out, values, its);
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) square_kernel(const struct square_sum_args args)
{
    float sum = 0;
#pragma unroll 4
    for (spread its(args.elements); its.is_here(); its.advance()) {
        float values[width];
        load<is_wide>(values, (const T *)args.in, its);
        each([&](int i) { sum += values[i] * values[i]; });
    }
    double total = block_sum((double)sum);
    if (threadIdx.x == 0) {
        args.scratch[blockIdx.x] = total;
    }
}

// Sums an array with the threads of one block. Every thread returns the sum.
template <typename T> __device__ inline double sum_all(const T *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        sum += (double)values[i];
    }
    return block_sum(sum);
}

__global__ void __launch_bounds__(LAUNCH_THREADS) square_total_kernel(const struct square_sum_args args, int64_t blocks)
{
    double sum = sum_all(args.scratch, blocks);
    if (threadIdx.x == 0) {
        *args.out = (float)(args.accumulates ? (double)*args.out + sum : sum);
    }
}

__global__ void __launch_bounds__(LAUNCH_THREADS) clip_kernel(const struct clip_args args)
{
    double norm = sqrt(sum_all(args.squares, args.count));
    if (threadIdx.x == 0) {
        *args.norm   = (float)norm;
        *args.factor = arithmetic_clip_scale(norm, (double)args.limit);
    }
}

__global__ void __launch_bounds__(LAUNCH_THREADS) scaled_sum_kernel(const struct scaled_sum_args args)
{
    double sum = (double)args.factor * sum_all(args.in, args.elements);
    if (threadIdx.x == 0) {
        *args.out = (float)(args.accumulates ? (double)*args.out + sum : sum);
    }
}
}    // namespace

int kernel_cast(const struct cast_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide = launch_is_wide(width, addresses(args->in, args->out));
    return with_type(args->from, [&](auto from) {
        return with_type(args->to, [&](auto to) {
            return with_flag(is_wide, [&](auto wide) {
                using From = decltype(from);
                using To   = decltype(to);
                return enqueue(cast_kernel<From, To, wide.value>, launch, 0, target, *args);
            });
        });
    });
}

int kernel_square_sum(const struct square_sum_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide = launch_is_wide(width, addresses(args->in));
    int           error   = with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(square_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
    return error != 0 ? error : enqueue(square_total_kernel, one_block, 0, target, *args, (int64_t)launch.blocks);
}

int kernel_clip(const struct clip_args *args, const struct kernel_target *target)
{
    return enqueue(clip_kernel, one_block, 0, target, *args);
}

int kernel_scaled_sum(const struct scaled_sum_args *args, const struct kernel_target *target)
{
    return enqueue(scaled_sum_kernel, one_block, 0, target, *args);
}
