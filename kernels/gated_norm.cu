// SPDX-License-Identifier: MIT
// Computes the gated RMS norm of Mamba-2, per group of columns, forward and backward:
//
//   v = in * silu(z), n = v / rms(v), out = n * weight
//   d v = (g - n mean(g n)) / rms(v) with g = d out * weight, d in = d v * silu(z), d z = d v * in * silu'(z)
//   d weight = sum over tokens of d out * n
//
// A group is a contiguous range of columns with its own norm. One warp handles one group of a token.
#include "gswbench/arithmetic.h"
#include "mamba.cuh"
#include "sum_parts.cuh"

namespace
{
// A group of columns of one token: its index, its first column, the index of its first element in arrays [tokens,
// inner] and [tokens, packed], and its number of columns.
struct place {
    int64_t group, column, at, packed, width;
};

__device__ inline place place_of(const gated_norm_args &args, int64_t index)
{
    int64_t inner = mamba_inner(&args.shape), width = inner / args.shape.groups, token = index / args.shape.groups;
    int64_t column = index % args.shape.groups * width;
    return {index % args.shape.groups, column, token * inner + column, token * mamba_packed(&args.shape) + column,
            width};
}

template <typename T> __device__ inline float gated(const gated_norm_args &args, const place &place, int64_t i)
{
    return widen(((const T *)args.in)[place.at + i]) *
           arithmetic_silu(widen(((const T *)args.packed)[place.packed + i]));
}

template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) gated_norm_kernel(const gated_norm_args args)
{
    int64_t count = tokens_of(args.shape) * args.shape.groups;
    int     lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t index = own_warp(); index < count; index += all_warps()) {
        place place  = place_of(args, index);
        float square = 0;
        for (int64_t i = lane; i < place.width; i += LAUNCH_WARP) {
            float v = gated<T>(args, place, i);
            square += v * v;
        }
        float scale = rsqrtf(warp_sum(square) / (float)place.width + args.shape.epsilon);
        for (int64_t i = lane; i < place.width; i += LAUNCH_WARP) {
            low_precision((T *)args.out + place.at + i,
                          gated<T>(args, place, i) * scale * widen(((const T *)args.weight)[place.column + i]));
        }
        if (lane == 0) {
            args.statistics[index] = scale;
        }
    }
}

// Sets the columns of packed_gradient after z (x, B, C and dt) to zero. The backward kernels of convolution and scan
// each write only some of these columns. The warps of a token's groups clear one share of these columns each.
template <typename T> __device__ inline void clear_share(const gated_norm_args &args, const place &place, int lane)
{
    int64_t inner = mamba_inner(&args.shape), others = mamba_packed(&args.shape) - inner;
    T      *row = (T *)args.packed_gradient + place.packed - place.column + inner;
    int64_t end = (place.group + 1) * others / args.shape.groups;
    for (int64_t i = place.group * others / args.shape.groups + lane; i < end; i += LAUNCH_WARP) {
        low_precision(row + i, 0.0f);
    }
}

template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) gate_slope_kernel(const gated_norm_args args)
{
    int64_t count = tokens_of(args.shape) * args.shape.groups;
    int     lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t index = own_warp(); index < count; index += all_warps()) {
        place    place = place_of(args, index);
        const T *d = (const T *)args.gradient + place.at, *weight = (const T *)args.weight + place.column;
        float    scale = args.statistics[index], along = 0;
        for (int64_t i = lane; i < place.width; i += LAUNCH_WARP) {
            along += widen(d[i]) * widen(weight[i]) * gated<T>(args, place, i) * scale;
        }
        float mean = warp_sum(along) / (float)place.width;
        for (int64_t i = lane; i < place.width; i += LAUNCH_WARP) {
            float y = widen(((const T *)args.in)[place.at + i]), z = widen(((const T *)args.packed)[place.packed + i]);
            float gate  = arithmetic_silu(z);
            float slope = scale * (widen(d[i]) * widen(weight[i]) - y * gate * scale * mean);
            low_precision((T *)args.in_gradient + place.at + i, slope * gate);
            low_precision((T *)args.packed_gradient + place.packed + i, slope * y * arithmetic_silu_slope(z));
        }
        clear_share<T>(args, place, lane);
    }
}

// Sums the weight gradient over a part of the tokens, and writes the partial sums to scratch [parts, inner].
template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) gate_weight_kernel(const gated_norm_args args)
{
    int64_t inner = mamba_inner(&args.shape), column = own_thread(), groups = args.shape.groups;
    float   sum = 0;
    if (column >= inner) {
        return;
    }
    for (int64_t token = blockIdx.y; token < tokens_of(args.shape); token += gridDim.y) {
        place place = place_of(args, token * groups + column / (inner / groups));
        sum += widen(((const T *)args.gradient)[token * inner + column]) *
               gated<T>(args, place, column - place.column) * args.statistics[token * groups + place.group];
    }
    args.scratch[blockIdx.y * inner + column] = sum;
}

launch every_group(const gated_norm_args *args, const kernel_target *target)
{
    return launch_warps(tokens_of(args->shape) * args->shape.groups, target->multiprocessors);
}
}    // namespace

int kernel_gated_norm(const struct gated_norm_args *args, const struct kernel_target *target)
{
    return with_type(args->type, [&](auto type) {
        return enqueue(gated_norm_kernel<decltype(type)>, every_group(args, target), 0, target, *args);
    });
}

int64_t kernel_gated_norm_scratch_bytes(const struct mamba_shape *shape)
{
    return parts_of(*shape) * mamba_inner(shape) * (int64_t)sizeof(float);
}

int kernel_gated_norm_backward(const struct gated_norm_args *args, const struct kernel_target *target)
{
    int64_t inner = mamba_inner(&args->shape);
    int     error = with_type(args->type, [&](auto type) {
        using T   = decltype(type);
        int first = enqueue(gate_slope_kernel<T>, every_group(args, target), 0, target, *args);
        return first != 0 ? first
                              : enqueue_grid(gate_weight_kernel<T>, column_grid(args->shape, inner), LAUNCH_THREADS, 0,
                                             target, *args);
    });
    return enqueue_sum_after(error, args, args->scratch, parts_of(args->shape), inner, args->weight_gradient, target);
}
