// SPDX-License-Identifier: MIT
// A packet of a row a thread at a time: one pass over memory.
#include "gswbench/arithmetic.h"

#include "activation.h"
#include "device.cuh"

namespace
{
constexpr int width = LAUNCH_WIDTH;

// The function of each of x and, for the backward pass, its slope.
__device__ inline void activate(float (&values)[width], const float (&x)[width], enum activation_function function)
{
#pragma unroll
    for (int i = 0; i < width; i++) {
        values[i] = function == ACTIVATION_FUNCTION_SILU   ? arithmetic_silu(x[i])
                    : function == ACTIVATION_FUNCTION_GELU ? arithmetic_gelu(x[i])
                                                           : arithmetic_relu2(x[i]);
    }
}

__device__ inline void differentiate(float (&slopes)[width], const float (&x)[width], enum activation_function function)
{
#pragma unroll
    for (int i = 0; i < width; i++) {
        slopes[i] = function == ACTIVATION_FUNCTION_SILU   ? arithmetic_silu_slope(x[i])
                    : function == ACTIVATION_FUNCTION_GELU ? arithmetic_gelu_slope(x[i])
                                                           : arithmetic_relu2_slope(x[i]);
    }
}

template <typename T, bool is_wide, enum activation_function function>
__global__ void __launch_bounds__(LAUNCH_THREADS) forward_kernel(const struct activation_forward_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const T *in  = (const T *)args.in + row * (args.is_gated ? 2 : 1) * args.columns;
        T       *out = (T *)args.out + row * args.columns;
#pragma unroll 2
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int       count = packet_elements<is_wide>(at, args.columns);
            packet<T> gate = fetch<is_wide>(in + at, count), up = {};
            float     x[width], values[width], factors[width];
            if (args.is_gated) {
                up = fetch<is_wide>(in + args.columns + at, count);
            }
            unpack(x, gate);
            unpack(factors, up);
            activate(values, x, function);
#pragma unroll
            for (int i = 0; i < width; i++) {
                values[i] *= args.is_gated ? factors[i] : 1.0f;
            }
            store<is_wide>(out + at, values, count);
        }
    }
}

template <typename T, bool is_wide, enum activation_function function>
__global__ void __launch_bounds__(LAUNCH_THREADS) backward_kernel(const struct activation_backward_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        int64_t  begin    = row * (args.is_gated ? 2 : 1) * args.columns;
        const T *in       = (const T *)args.in + begin;
        const T *gradient = (const T *)args.gradient + row * args.columns;
        T       *out      = (T *)args.out + begin;
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int       count = packet_elements<is_wide>(at, args.columns);
            packet<T> from = fetch<is_wide>(gradient + at, count), gate = fetch<is_wide>(in + at, count), up = {};
            float     x[width], values[width], slopes[width], factors[width], gradients[width];
            if (args.is_gated) {
                up = fetch<is_wide>(in + args.columns + at, count);
            }
            unpack(gradients, from);
            unpack(x, gate);
            unpack(factors, up);
            activate(values, x, function);
            differentiate(slopes, x, function);
#pragma unroll
            for (int i = 0; i < width; i++) {
                slopes[i] *= gradients[i] * (args.is_gated ? factors[i] : 1.0f);
                values[i] *= gradients[i];
            }
            store<is_wide>(out + at, slopes, count);
            if (args.is_gated) {
                store<is_wide>(out + args.columns + at, values, count);
            }
        }
    }
}

template <enum activation_function chosen> struct function_constant {
    static constexpr enum activation_function value = chosen;
};

template <typename Body> int with_function(enum activation_function function, Body body)
{
    switch (function) {
    case ACTIVATION_FUNCTION_SILU:
        return body(function_constant<ACTIVATION_FUNCTION_SILU>());
    case ACTIVATION_FUNCTION_GELU:
        return body(function_constant<ACTIVATION_FUNCTION_GELU>());
    case ACTIVATION_FUNCTION_RELU2:
        return body(function_constant<ACTIVATION_FUNCTION_RELU2>());
    }
    return cudaErrorInvalidValue;
}
}    // namespace

int kernel_activation_forward(const struct activation_forward_args *args, const struct kernel_target *target)
{
    struct launch launch =
        launch_rows(args->rows, launch_groups(args->columns, width), LAUNCH_THREADS, target->multiprocessors);
    bool is_wide = launch_is_wide(args->columns, addresses(args->in, args->out));
    return with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return with_function(args->function, [&](auto function) {
                return enqueue(forward_kernel<decltype(type), wide.value, function.value>, launch, 0, target, *args);
            });
        });
    });
}

int kernel_activation_backward(const struct activation_backward_args *args, const struct kernel_target *target)
{
    struct launch launch =
        launch_rows(args->rows, launch_groups(args->columns, width), LAUNCH_THREADS, target->multiprocessors);
    bool is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in, args->out));
    return with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return with_function(args->function, [&](auto function) {
                return enqueue(backward_kernel<decltype(type), wide.value, function.value>, launch, 0, target, *args);
            });
        });
    });
}
