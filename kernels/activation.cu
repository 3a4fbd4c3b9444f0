// SPDX-License-Identifier: MIT
// A packet of a row a thread at a time: one pass over memory.
#include "gswbench/arithmetic.h"

#include "activation.h"
#include "quantize.cuh"

namespace
{
__device__ inline float activate(float x, enum activation_function function)
{
    return function == ACTIVATION_FUNCTION_SILU   ? arithmetic_silu(x)
           : function == ACTIVATION_FUNCTION_GELU ? arithmetic_gelu(x)
                                                  : arithmetic_relu2(x);
}

__device__ inline float differentiate(float x, enum activation_function function)
{
    return function == ACTIVATION_FUNCTION_SILU   ? arithmetic_silu_slope(x)
           : function == ACTIVATION_FUNCTION_GELU ? arithmetic_gelu_slope(x)
                                                  : arithmetic_relu2_slope(x);
}

template <typename T, bool is_wide, enum activation_function function>
__global__ void __launch_bounds__(LAUNCH_THREADS) forward_kernel(const struct activation_forward_args args)
{
    float largest = 0;
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
#pragma unroll
            for (int i = 0; i < width; i++) {
                values[i] = activate(x[i], function) * (args.is_gated ? factors[i] : 1.0f);
            }
            largest = larger(largest, values);
            if (args.out != NULL) {
                store<is_wide>(out + at, values, count);
            }
        }
    }
    if (args.magnitude != NULL) {
        raise_stored<T>(args.magnitude, largest);
    }
}

template <typename T, bool is_wide, enum activation_function function>
__global__ void __launch_bounds__(LAUNCH_THREADS) backward_kernel(const struct activation_backward_args args)
{
    float largest = 0;
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
#pragma unroll
            for (int i = 0; i < width; i++) {
                slopes[i] = differentiate(x[i], function) * (gradients[i] * (args.is_gated ? factors[i] : 1.0f));
                values[i] = activate(x[i], function) * gradients[i];
            }
            largest = larger(largest, slopes);
            largest = args.is_gated ? larger(largest, values) : largest;
            if (args.out != NULL) {
                store<is_wide>(out + at, slopes, count);
            }
            if (args.out != NULL && args.is_gated) {
                store<is_wide>(out + args.columns + at, values, count);
            }
        }
    }
    if (args.magnitude != NULL) {
        raise_stored<T>(args.magnitude, largest);
    }
}

struct activated_source {
    struct activation_forward_args args;
    static constexpr int           parts = 1;

    template <bool is_wide>
    __device__ void get(packet<bf16> (&to)[1], const patch &its, int i, int64_t columns, int count) const
    {
        int64_t     row = its.first_row + its.row + i;
        const bf16 *in  = (const bf16 *)args.in + its.at + i * columns + (args.is_gated ? row * columns : 0);
        float       x[width], factors[width];
        load<is_wide>(x, in, count);
        if (args.is_gated) {
            load<is_wide>(factors, in + columns, count);
        }
#pragma unroll
        for (int j = 0; j < width; j++) {
            x[j] = activate(x[j], args.function) * (args.is_gated ? factors[j] : 1.0f);
        }
        to[0] = pack<bf16>(x);
    }
};

__device__ inline float derive(float x, float gradient, float factor, bool is_up, enum activation_function function)
{
    return is_up ? activate(x, function) * gradient : differentiate(x, function) * (gradient * factor);
}

// Of a gated activation, the gradient of up follows that of gate in a row. Where rows are not of whole packets, one may
// hold the end of the one and the beginning of the other.
struct differentiated_source {
    struct activation_backward_args args;
    static constexpr int            parts = 1;

    template <bool is_wide>
    __device__ void get(packet<bf16> (&to)[1], const patch &its, int i, int64_t columns, int count) const
    {
        int64_t     row = its.first_row + its.row + i, column = its.first_column + its.column;
        const bf16 *in = (const bf16 *)args.in + row * columns, *gradient = (const bf16 *)args.gradient;
        float       values[width] = {};
        gradient += row * args.columns;
        if constexpr (is_wide) {
            bool    is_up = column >= args.columns;
            int64_t at    = is_up ? column - args.columns : column;
            float   x[width], gradients[width], factors[width];
            load<true>(x, in + at);
            load<true>(gradients, gradient + at);
            if (args.is_gated && !is_up) {
                load<true>(factors, in + args.columns + at);
            }
#pragma unroll
            for (int j = 0; j < width; j++) {
                values[j] = derive(x[j], gradients[j], args.is_gated ? factors[j] : 1.0f, is_up, args.function);
            }
        } else {
            for (int j = 0; j < count; j++) {
                bool    is_up  = column + j >= args.columns;
                int64_t at     = column + j - (is_up ? args.columns : 0);
                float   factor = args.is_gated ? widen(in[args.columns + at]) : 1.0f;
                values[j]      = derive(widen(in[at]), widen(gradient[at]), factor, is_up, args.function);
            }
        }
        to[0] = pack<bf16>(values);
    }
};

// The gradients of gate and of up at once, from operands that are read once. Rows of whole tiles.
struct paired_source {
    struct activation_backward_args args;
    static constexpr int            parts = 2;

    template <bool is_wide> __device__ void get(packet<bf16> (&to)[2], const patch &its, int i, int64_t, int) const
    {
        static_assert(is_wide, "tiles are whole");
        int64_t     row = its.first_row + its.row + i, column = its.first_column + its.column;
        const bf16 *in       = (const bf16 *)args.in + row * 2 * args.columns + column;
        const bf16 *gradient = (const bf16 *)args.gradient + row * args.columns + column;
        float       x[width], gradients[width], factors[width], slopes[width];
        load<true>(x, in);
        load<true>(factors, in + args.columns);
        load<true>(gradients, gradient);
#pragma unroll
        for (int j = 0; j < width; j++) {
            slopes[j] = derive(x[j], gradients[j], factors[j], false, args.function);
            x[j]      = derive(x[j], gradients[j], factors[j], true, args.function);
        }
        to[0] = pack<bf16>(slopes);
        to[1] = pack<bf16>(x);
    }
};

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
    int  error   = clear_magnitude(args->magnitude, target);
    return error != 0 ? error : with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return with_function(args->function, [&](auto function) {
                return enqueue(forward_kernel<decltype(type), wide.value, function.value>, launch, 0, target, *args);
            });
        });
    });
}

int kernel_activation_forward_quantize(const struct activation_forward_args *args, const struct quantize_args *copies,
                                       const struct kernel_target *target)
{
    return enqueue_fused(activated_source{*args}, copies, launch_is_wide(args->columns, addresses(args->in)), target);
}

int kernel_activation_backward(const struct activation_backward_args *args, const struct kernel_target *target)
{
    struct launch launch =
        launch_rows(args->rows, launch_groups(args->columns, width), LAUNCH_THREADS, target->multiprocessors);
    bool is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in, args->out));
    int  error   = clear_magnitude(args->magnitude, target);
    return error != 0 ? error : with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return with_function(args->function, [&](auto function) {
                return enqueue(backward_kernel<decltype(type), wide.value, function.value>, launch, 0, target, *args);
            });
        });
    });
}

int kernel_activation_backward_quantize(const struct activation_backward_args *args, const struct quantize_args *copies,
                                        const struct kernel_target *target)
{
    bool is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in)) && copies_are_wide(copies);
    if (args->is_gated && is_wide && args->columns % side == 0) {
        return enqueue_fused(paired_source{*args}, copies, true, target);
    }
    return enqueue_fused(differentiated_source{*args}, copies, is_wide, target);
}
