// SPDX-License-Identifier: MIT
// Computes the causal convolution of each channel, forward and backward:
//
//   s_t = bias + sum over j < taps of w_(taps-1-j) x_(t-j), out = silu(s)
//   d s = d out * silu'(s)                             slope_kernel
//   d x_t = sum over j of w_(taps-1-j) d s_(t+j)       input_kernel
//   d w_(taps-1-j) = sum over t of d s_t x_(t-j)       weight_kernel
//
// A thread handles one element at a time. Adjacent threads handle adjacent channels. The inputs of the previous
// positions come from the cache.
#include "gswbench/arithmetic.h"
#include "mamba.cuh"
#include "sum_parts.cuh"

namespace
{
// Computes the sum s at one position of a channel, before SiLU.
template <typename T> __device__ inline float sum_at(const convolution_args &args, int64_t token, int64_t channel)
{
    int64_t  position = token % args.shape.sequence, taps = args.shape.taps, width = mamba_packed(&args.shape);
    const T *in  = (const T *)args.packed + token * width + mamba_inner(&args.shape) + channel;
    const T *w   = (const T *)args.weight + channel * taps;
    float    sum = widen(((const T *)args.bias)[channel]);
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t back = taps - 1 - tap;
        sum += back > position ? 0.0f : widen(w[tap]) * widen(in[-back * width]);
    }
    return sum;
}

template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) convolution_kernel(const convolution_args args)
{
    int64_t channels = mamba_channels(&args.shape), count = tokens_of(args.shape) * channels;
    for (int64_t i = own_thread(); i < count; i += all_threads()) {
        low_precision((T *)args.out + i, arithmetic_silu(sum_at<T>(args, i / channels, i % channels)));
    }
}

// Writes d s in fp32 to scratch [tokens, channels].
template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) slope_kernel(const convolution_args args)
{
    int64_t channels = mamba_channels(&args.shape), count = tokens_of(args.shape) * channels;
    for (int64_t i = own_thread(); i < count; i += all_threads()) {
        float slope     = arithmetic_silu_slope(sum_at<T>(args, i / channels, i % channels));
        args.scratch[i] = widen(((const T *)args.gradient)[i]) * slope;
    }
}

template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) input_kernel(const convolution_args args)
{
    int64_t channels = mamba_channels(&args.shape), count = tokens_of(args.shape) * channels, taps = args.shape.taps;
    for (int64_t i = own_thread(); i < count; i += all_threads()) {
        int64_t  token = i / channels, channel = i % channels, position = token % args.shape.sequence;
        const T *w   = (const T *)args.weight + channel * taps;
        float    sum = 0;
        for (int64_t ahead = 0; ahead < taps && position + ahead < args.shape.sequence; ahead++) {
            sum += widen(w[taps - 1 - ahead]) * args.scratch[i + ahead * channels];
        }
        low_precision(
            (T *)args.packed_gradient + token * mamba_packed(&args.shape) + mamba_inner(&args.shape) + channel, sum);
    }
}

// Sums the weight and bias gradients over a part of the tokens. Scratch holds d s [tokens, channels], then the partial
// sums of the weight gradient [parts, channels, taps] and of the bias gradient [parts, channels].
template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) weight_kernel(const convolution_args args)
{
    int64_t channels = mamba_channels(&args.shape), channel = own_thread(), taps = args.shape.taps;
    int64_t tokens = tokens_of(args.shape), width = mamba_packed(&args.shape);
    float   sums[MAMBA_TAPS_MAX] = {}, bias = 0;
    if (channel >= channels) {
        return;
    }
    for (int64_t token = blockIdx.y; token < tokens; token += gridDim.y) {
        int64_t  position = token % args.shape.sequence;
        float    slope    = args.scratch[token * channels + channel];
        const T *in       = (const T *)args.packed + token * width + mamba_inner(&args.shape) + channel;
        bias += slope;
        each<MAMBA_TAPS_MAX>([&](int back) {
            if (back < taps && back <= position) {
                sums[back] += slope * widen(in[-back * width]);
            }
        });
    }
    float *weights = args.scratch + tokens * channels + (blockIdx.y * channels + channel) * taps;
    float *biases  = args.scratch + tokens * channels + gridDim.y * channels * taps + blockIdx.y * channels;
    each<MAMBA_TAPS_MAX>([&](int back) {
        if (back < taps) {
            weights[taps - 1 - back] = sums[back];
        }
    });
    biases[channel] = bias;
}

launch every_element(const convolution_args *args, const kernel_target *target)
{
    return launch_items(tokens_of(args->shape) * mamba_channels(&args->shape), target->multiprocessors);
}
}    // namespace

int kernel_convolution(const struct convolution_args *args, const struct kernel_target *target)
{
    return with_type(args->type, [&](auto type) {
        return enqueue(convolution_kernel<decltype(type)>, every_element(args, target), 0, target, *args);
    });
}

int64_t kernel_convolution_scratch_bytes(const struct mamba_shape *shape)
{
    return (tokens_of(*shape) + parts_of(*shape) * (shape->taps + 1)) * mamba_channels(shape) * (int64_t)sizeof(float);
}

int kernel_convolution_backward(const struct convolution_args *args, const struct kernel_target *target)
{
    int64_t       channels = mamba_channels(&args->shape), parts = parts_of(args->shape);
    float        *weights = args->scratch + tokens_of(args->shape) * channels;
    struct launch launch  = every_element(args, target);
    int           error   = with_type(args->type, [&](auto type) {
        using T   = decltype(type);
        int first = enqueue(slope_kernel<T>, launch, 0, target, *args);
        first     = first != 0 ? first : enqueue(input_kernel<T>, launch, 0, target, *args);
        return first != 0 ? first
                                      : enqueue_grid(weight_kernel<T>, column_grid(args->shape, channels), LAUNCH_THREADS, 0,
                                                     target, *args);
    });
    error = enqueue_sum_after(error, args, weights, parts, channels * args->shape.taps, args->weight_gradient, target);
    return enqueue_sum_after(error, args, weights + parts * channels * args->shape.taps, parts, channels,
                             args->bias_gradient, target);
}
