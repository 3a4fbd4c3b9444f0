// SPDX-License-Identifier: MIT
// Computes MoE combine and its gradient. A choice is one of the top_k experts of a token. Its slot is the row of the
// expert output that belongs to it:
//
//   out = sum over choices of gate * in[slot]
//   d in[slot] = gate * d out, d gate = dot(d out, in[slot])
//
// Forward, one thread block handles one token; backward, one slot.
#include "device.cuh"
#include "route.h"

namespace
{
constexpr int batch = 4;    // choices of a token that are loaded together

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) forward_kernel(const struct combine_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int   count       = packet_elements<is_wide>(at, args.columns);
            float sums[width] = {};
            for (int64_t first = row * args.top_k; first < (row + 1) * args.top_k; first += batch) {
                packet<T> raw[batch] = {};
                float     gates[batch];
#pragma unroll
                for (int i = 0; i < batch; i++) {
                    bool    is_here = first + i < (row + 1) * args.top_k;
                    int64_t place   = is_here ? args.places[first + i] : -1;
                    gates[i]        = is_here && args.gates != NULL ? args.gates[first + i] : 1.0f;
                    CHECK_INDEX(place + 1, args.slots + 1);    // -1: the choice was dropped
                    if (place >= 0) {
                        raw[i] = fetch<is_wide>((const T *)args.in + place * args.columns + at, count);
                    }
                }
#pragma unroll
                for (int i = 0; i < batch; i++) {
                    float values[width];
                    unpack(values, raw[i]);
                    each([&](int j) { sums[j] += gates[i] * values[j]; });
                }
            }
            store_sum<is_wide>((T *)args.out + row * args.columns + at, sums, count, args.accumulates);
        }
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) backward_kernel(const struct combine_backward_args args)
{
    for (int64_t slot = blockIdx.x; slot < args.slots; slot += gridDim.x) {
        int32_t choice   = args.sources[slot];
        bool    is_empty = choice < 0;
        CHECK_INDEX(choice + 1, args.rows * args.top_k + 1);    // -1: the slot is empty
        float    gate     = is_empty ? 0.0f : args.gates[choice];
        const T *gradient = (const T *)args.gradient + (is_empty ? 0 : choice / args.top_k) * args.columns;
        const T *in       = (const T *)args.in + slot * args.columns;
        T       *out      = (T *)args.out + slot * args.columns;
        float    product  = 0;
        for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
            int       count = packet_elements<is_wide>(at, args.columns);
            packet<T> first = {}, second = {};
            float     values[width], others[width];
            if (!is_empty) {
                first = fetch<is_wide>(gradient + at, count);
                if (args.in != NULL) {
                    second = fetch<is_wide>(in + at, count);
                }
            }
            unpack(values, first);
            unpack(others, second);
            each([&](int i) {
                product += values[i] * others[i];
                values[i] *= gate;
            });
            if (args.out != NULL) {
                store<is_wide>(out + at, values, count);
            }
        }
        product = block_sum(product);
        if (threadIdx.x == 0 && !is_empty && args.gates_gradient != NULL) {
            args.gates_gradient[choice] = product;
        }
    }
}
}    // namespace

int kernel_combine(const struct combine_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_packets(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->in, args->out));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(forward_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}

int kernel_combine_backward(const struct combine_backward_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_packets(args->slots, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->gradient, args->in, args->out));
    size_t        bytes   = (size_t)(args->rows * args->top_k) * sizeof(float);
    int error = args->gates_gradient != NULL ? cudaMemsetAsync(args->gates_gradient, 0, bytes, target->stream) : 0;
    if (error != 0) {
        return error;
    }
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(backward_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}
