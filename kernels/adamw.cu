// SPDX-License-Identifier: MIT
// Updates weights by AdamW, with the clipped gradient g and bias corrections c1, c2:
//
//   m += (1 - beta1) (g - m), v = beta2 v + (1 - beta2) g^2
//   w = (1 - rate * decay) w - rate / c1 * m / (sqrt(v / c2) + epsilon)
//
// Each thread loads eight elements of every array before it computes, so that all loads are in flight together.
#include "gswbench/arithmetic.h"

#include "elements.h"
#include "codes.cuh"
#include "spread.cuh"

namespace
{
__device__ inline struct arithmetic_adamw constants_of(const struct adamw_args &args)
{
    struct adamw_hyper hyper = *args.hyper;
    return {*args.scale,
            1.0f - hyper.learning_rate * hyper.decay,
            1.0f - hyper.beta1,
            1.0f - hyper.beta2,
            hyper.beta2,
            hyper.learning_rate / hyper.correction1,
            1.0f / sqrtf(hyper.correction2),
            hyper.epsilon};
}

template <typename Weight, bool is_wide> __device__ inline float largest_weight(const struct adamw_args &args)
{
    float largest = 0;
    for (spread its(args.elements); its.is_here(); its.advance()) {
        float weight[width];
        load<is_wide>(weight, (const Weight *)args.weight, its);
        largest = larger(largest, weight);
    }
    return largest;
}

template <typename Gradient, typename Moment, typename Weight, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) adamw_kernel(const struct adamw_args args)
{
    struct arithmetic_adamw constants = constants_of(args);
    if (isnan(constants.gradient_scale)) {    // the gradient norm is not finite: skip the update
        if (args.magnitude != NULL) {
            raise(args.magnitude, largest_weight<Weight, is_wide>(args));
        }
        return;
    }
    float   largest = 0;
    Moment *firsts = (Moment *)args.first, *seconds = (Moment *)args.second;
    for (spread its(args.elements); its.is_here(); its.advance()) {
        packet<Gradient> raw_gradient = fetch<is_wide>((const Gradient *)args.gradient, its);
        packet<Moment>   raw_first    = fetch<is_wide>(firsts, its);
        packet<Moment>   raw_second   = fetch<is_wide>(seconds, its);
        float            gradient[width], first[width], second[width], weight[width];
        if (args.master != NULL) {
            load<is_wide>(weight, args.master, its);
        } else {
            load<is_wide>(weight, (const Weight *)args.weight, its);
        }
        unpack(gradient, raw_gradient);
        unpack(first, raw_first);
        unpack(second, raw_second);
        each([&](int i) { arithmetic_adamw_update(&constants, gradient[i], &weight[i], &first[i], &second[i]); });
        store<is_wide>(firsts, first, its);
        store<is_wide>(seconds, second, its);
        if (args.master != NULL) {
            store<is_wide>(args.master, weight, its);
        }
        if (args.weight != NULL) {
            store<is_wide>((Weight *)args.weight, weight, its);
        }
        largest = larger(largest, weight);
    }
    if (args.magnitude != NULL) {
        raise_stored<Weight>(args.magnitude, largest);
    }
}

template <typename Gradient, typename Moment, typename Weight>
int launch_adamw(const struct adamw_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    bool          is_wide =
        launch_is_wide(width, addresses(args->gradient, args->master, args->first, args->second, args->weight));
    return with_flag(is_wide, [&](auto wide) {
        return enqueue(adamw_kernel<Gradient, Moment, Weight, wide.value>, launch, 0, target, *args);
    });
}
}    // namespace

int kernel_adamw(const struct adamw_args *args, const struct kernel_target *target)
{
    if (args->weight != NULL && args->weight_type == FORMAT_F32) {    // fp32 weights need fp32 gradients and moments
        bool is_plain = args->gradient_type == FORMAT_F32 && args->moment == FORMAT_F32;
        return is_plain ? launch_adamw<float, float, float>(args, target) : (int)cudaErrorInvalidValue;
    }
    return with_type(args->gradient_type, [&](auto gradient) {
        return with_type(args->moment, [&](auto moment) {
            return launch_adamw<decltype(gradient), decltype(moment), bf16>(args, target);
        });
    });
}
