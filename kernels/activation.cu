// SPDX-License-Identifier: MIT
// Computes MLP activations and their gradients:
//
//   gated:  out = f(gate) up, d gate = f'(gate) up d out, d up = f(gate) d out
//   plain:  out = f(x), d x = f'(x) d out
//
// f is SiLU, GELU or squared ReLU. A thread block handles one row at a time, and a thread eight adjacent elements at a
// time, in one pass over memory. The _quantize functions compute the same values inside the FP8 quantization kernel of
// quantize.cuh, so that the BF16 result is never stored.
#include "gswbench/arithmetic.h"

#include "norm.h"
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
__global__ void __launch_bounds__(LAUNCH_THREADS) forward_kernel(const struct activation_args args)
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
            each([&](int i) { values[i] = activate(x[i], function) * (args.is_gated ? factors[i] : 1.0f); });
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
__global__ void __launch_bounds__(LAUNCH_THREADS) backward_kernel(const struct activation_args args)
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
            each([&](int i) {
                slopes[i] = differentiate(x[i], function) * (gradients[i] * (args.is_gated ? factors[i] : 1.0f));
                values[i] = activate(x[i], function) * gradients[i];
            });
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

__device__ inline float derive(float x, float gradient, float factor, bool is_up, enum activation_function function)
{
    return (is_up ? activate(x, function) : differentiate(x, function)) * (is_up ? gradient : gradient * factor);
}

__device__ inline packet<bf16> ones()
{
    const uint32_t pair = 0x3f803f80;
    return {{make_uint4(pair, pair, pair, pair)}};
}

// Computes the activation's output for the FP8 quantization kernel. fetch_row loads eight elements of gate (or x) and
// of up. Without a gate it loads x twice, and compute multiplies by 1 instead of up.
template <enum activation_function function> struct activated_source {
    struct activation_args args;
    static constexpr int   parts = 1, operands = 2, together = width / 2;

    template <bool is_wide>
    __device__ void fetch_row(packet<bf16> (&to)[2], int64_t row, int64_t column, int64_t pitch, int count) const
    {
        const bf16 *in = (const bf16 *)args.in + row * (args.is_gated ? 2 * pitch : pitch) + column;
        to[0]          = fetch<is_wide>(in, count);
        to[1]          = fetch<is_wide>(args.is_gated ? in + pitch : in, count);
    }
    template <bool is_wide>
    __device__ void compute(packet<bf16> (&to)[1], const packet<bf16> (&from)[2], int64_t, int64_t, int) const
    {
        float x[width], factors[width];
        unpack(x, from[0]);
        unpack(factors, args.is_gated ? from[1] : ones());
        each([&](int j) { x[j] = activate(x[j], function) * factors[j]; });
        to[0] = pack<bf16>(x);
    }
};

// Computes the gradient of the activation's input for the FP8 quantization kernel. An output row is (d gate, d up) if
// gated, else d x. For each output element, fetch_row loads the gate (or x), the output gradient and up. d up and d x
// do not depend on up: compute ignores to[2], and fetch_row loads any valid elements into it. If the row length is not
// a multiple of eight, elements are loaded one by one, because a packet of eight outputs can contain the end of d gate
// and the start of d up.
template <enum activation_function function> struct differentiated_source {
    struct activation_args args;
    static constexpr int   parts = 1, operands = 3, together = width / 4;

    template <bool is_wide>
    __device__ void fetch_row(packet<bf16> (&to)[3], int64_t row, int64_t column, int64_t pitch, int count) const
    {
        const bf16 *in = (const bf16 *)args.in + row * pitch, *gradient = (const bf16 *)args.gradient;
        gradient += row * args.columns;
        if constexpr (is_wide) {
            bool    is_up = column >= args.columns;
            int64_t at    = is_up ? column - args.columns : column;
            to[0]         = fetch<true>(in + at);
            to[1]         = fetch<true>(gradient + at);
            to[2]         = fetch<true>(in + (args.is_gated && !is_up ? args.columns + at : at));
        } else {
            float x[width] = {}, gradients[width] = {}, factors[width] = {};
            for (int j = 0; j < count; j++) {
                bool    is_up = column + j >= args.columns;
                int64_t at    = column + j - (is_up ? args.columns : 0);
                x[j]          = widen(in[at]);
                gradients[j]  = widen(gradient[at]);
                factors[j]    = widen(in[args.is_gated ? args.columns + at : at]);
            }
            to[0] = pack<bf16>(x);
            to[1] = pack<bf16>(gradients);
            to[2] = pack<bf16>(factors);
        }
    }
    template <bool is_wide>
    __device__ void compute(packet<bf16> (&to)[1], const packet<bf16> (&from)[3], int64_t, int64_t column, int) const
    {
        float x[width], gradients[width], factors[width];
        unpack(x, from[0]);
        unpack(gradients, from[1]);
        unpack(factors, args.is_gated ? from[2] : ones());
        each([&](int j) {
            bool is_up = column + (is_wide ? 0 : j) >= args.columns;
            x[j]       = derive(x[j], gradients[j], factors[j], is_up, function);
        });
        to[0] = pack<bf16>(x);
    }
};

// Computes d gate and d up together for the FP8 quantization kernel, so that gate, up and the output gradient are read
// once instead of twice. args.columns, the columns of d gate and of d up, must be a multiple of the tile width, 128.
template <enum activation_function function> struct paired_source {
    struct activation_args args;
    static constexpr int   parts = 2, operands = 3, together = width / 4;

    template <bool is_wide>
    __device__ void fetch_row(packet<bf16> (&to)[3], int64_t row, int64_t column, int64_t, int) const
    {
        static_assert(is_wide, "tiles are whole");
        const bf16 *in = (const bf16 *)args.in + row * 2 * args.columns + column;
        to[0]          = fetch<true>(in);
        to[1]          = fetch<true>((const bf16 *)args.gradient + row * args.columns + column);
        to[2]          = fetch<true>(in + args.columns);
    }
    template <bool is_wide>
    __device__ void compute(packet<bf16> (&to)[2], const packet<bf16> (&from)[3], int64_t, int64_t, int) const
    {
        float x[width], gradients[width], factors[width], slopes[width];
        unpack(x, from[0]);
        unpack(gradients, from[1]);
        unpack(factors, from[2]);
        each([&](int j) {
            slopes[j] = derive(x[j], gradients[j], factors[j], false, function);
            x[j]      = derive(x[j], gradients[j], factors[j], true, function);
        });
        to[0] = pack<bf16>(slopes);
        to[1] = pack<bf16>(x);
    }
};

template <typename Body> int with_function(enum activation_function function, Body body)
{
    return with_value<ACTIVATION_FUNCTION_SILU, ACTIVATION_FUNCTION_GELU, ACTIVATION_FUNCTION_RELU2>(function, body);
}
}    // namespace

int kernel_activation(const struct activation_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_packets(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in, args->out));
    int           error   = clear_magnitude(args->magnitude, target);
    return error != 0 ? error : with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return with_function(args->function, [&](auto function) {
            auto kernel = args->gradient == NULL ? forward_kernel<decltype(type), wide.value, function.value>
                                                 : backward_kernel<decltype(type), wide.value, function.value>;
            return enqueue(kernel, launch, 0, target, *args);
        });
    });
}

int kernel_activation_quantize(const struct activation_args *args, const struct quantize_args *copies,
                               const struct kernel_target *target)
{
    bool is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in));
    return with_function(args->function, [&](auto function) {
        if (args->gradient == NULL) {
            return enqueue_fused(activated_source<function.value>{*args}, copies, is_wide, target);
        }
        if constexpr (function.value != ACTIVATION_FUNCTION_RELU2) {    // squared ReLU has no gate
            if (args->is_gated && is_wide && copies_are_wide(copies) && args->columns % side == 0) {
                return enqueue_fused(paired_source<function.value>{*args}, copies, true, target);
            }
        }
        return enqueue_fused(differentiated_source<function.value>{*args}, copies, is_wide, target);
    });
}
