// SPDX-License-Identifier: MIT
// Computes Muon before and after its Newton-Schulz GEMMs:
//
//   m += (1 - decay) (g - m), u = g + decay (m - g)      momentum (Nesterov), with the clipped gradient g
//   x = u / |u|                                          normalization by the Frobenius norm of the matrix
//   w = (1 - rate * weight decay) w - rate * factor * x  update, with x after the iterations
//
// The Newton-Schulz iterations between normalization and update are GEMMs. A thread handles eight elements at a time.
#include "gswbench/arithmetic.h"

#include "elements.h"
#include "spread.cuh"

namespace
{
template <typename Gradient, typename Moment, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) momentum_kernel(const struct momentum_args args)
{
    float   scale   = *args.scale;
    bool    is_kept = isnan(scale);    // the gradient norm is not finite: skip the update
    Moment *moments = (Moment *)args.momentum;
    for (spread its(args.elements); its.is_here(); its.advance()) {
        packet<Gradient> raw_gradient = fetch<is_wide>((const Gradient *)args.gradient, its);
        packet<Moment>   raw_moment   = fetch<is_wide>(moments, its);
        float            gradient[width], momentum[width], out[width];
        unpack(gradient, raw_gradient);
        unpack(momentum, raw_moment);
        each([&](int i) {
            out[i] = is_kept ? 0.0f : arithmetic_momentum(scale * gradient[i], args.decay, &momentum[i]);
        });
        store<is_wide>(moments, momentum, its);
        store<is_wide>(args.out, out, its);
    }
}

template <typename To, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) normalize_kernel(const struct normalize_args args)
{
    float factor = arithmetic_normal_factor(*args.squares);
    for (spread its(args.elements); its.is_here(); its.advance()) {
        float values[width];
        load<is_wide>(values, args.in, its);
        each([&](int i) { values[i] *= factor; });
        store<is_wide>((To *)args.out, values, its);
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) muon_kernel(const struct muon_args args)
{
    if (isnan(*args.scale)) {
        return;
    }
    float keep = 1.0f - args.hyper->learning_rate * args.hyper->decay, step = args.hyper->learning_rate * args.factor;
    T    *weights = (T *)args.weight;
    for (spread its(args.elements); its.is_here(); its.advance()) {
        packet<T> raw = fetch<is_wide>((const T *)args.update, its);
        float     update[width], weight[width];
        if (args.master != NULL) {
            load<is_wide>(weight, args.master, its);
        } else {
            load<is_wide>(weight, weights, its);
        }
        unpack(update, raw);
        each([&](int i) { weight[i] = weight[i] * keep - step * update[i]; });
        if (args.master != NULL) {
            store<is_wide>(args.master, weight, its);
        }
        if (weights != NULL) {
            store<is_wide>(weights, weight, its);
        }
    }
}
}    // namespace

int kernel_momentum(const struct momentum_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide = launch_is_wide(width, addresses(args->gradient, args->momentum, args->out));
    return with_type(args->gradient_type, [&](auto gradient) {
        return with_type(args->moment, [&](auto moment) {
            return with_flag(is_wide, [&](auto wide) {
                return enqueue(momentum_kernel<decltype(gradient), decltype(moment), wide.value>, launch, 0, target,
                               *args);
            });
        });
    });
}

int kernel_normalize(const struct normalize_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide = launch_is_wide(width, addresses(args->in, args->out));
    return with_packets(args->type, is_wide, [&](auto to, auto wide) {
        return enqueue(normalize_kernel<decltype(to), wide.value>, launch, 0, target, *args);
    });
}

int kernel_muon(const struct muon_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide = launch_is_wide(width, addresses(args->update, args->master, args->weight));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(muon_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}
