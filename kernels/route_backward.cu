// SPDX-License-Identifier: MIT
// Computes the gradient of a router logit: the sum of the terms below, times 1 - score if scores are sigmoids. a is the
// auxiliary scale, p are probabilities, c args.counts (constants), g gates, h their gradients, s the sum of the gates.
//
//   a p_e (c_e - sum(p c))                 every expert e: auxiliary loss
//   g_j (h_j - sum(g h) / s)               chosen expert j, if gates are normalised
//   g_j h_j                                chosen expert j, if gates are not normalised
//   -p_e sum(g h)                          every expert e, if softmax gates are not normalised
//
// One warp handles one row.
#include "route.h"
#include "route_scores.cuh"

namespace
{
template <typename T>
__global__ void __launch_bounds__(LAUNCH_THREADS) backward_kernel(const struct route_backward_args args)
{
    const struct routing_shape &shape = args.shape;
    int                         lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t row = own_warp(); row < shape.rows; row += all_warps()) {
        const float   *logits = args.logits + (shape.first + row) * shape.experts;
        const float   *counts = args.counts + route_sequence(&shape, shape.first + row) * shape.experts;
        const int32_t *chosen = args.choices + row * shape.top_k;
        const float   *gates = args.gates + row * shape.top_k, *gradients = args.gates_gradient + row * shape.top_k;
        row_scores     scores = scores_of(logits, shape.experts, shape.score == ROUTER_SIGMOID);
        float          mean = 0, product = 0;
        for (int64_t expert = lane; expert < shape.experts; expert += LAUNCH_WARP) {
            mean += counts[expert] * probability(scores, logits[expert]);
        }
        for (int64_t j = lane; j < shape.top_k; j += LAUNCH_WARP) {
            product += gates[j] * gradients[j];
        }
        mean            = warp_sum(mean);
        product         = warp_sum(product);
        float of_chosen = shape.is_absolute ? 0.0f : product / shape.scale;
        float of_all    = shape.is_absolute && shape.score == ROUTER_SOFTMAX ? product : 0.0f;
        for (int64_t expert = lane; expert < shape.experts; expert += LAUNCH_WARP) {
            float sum = probability(scores, logits[expert]) * (args.auxiliary_scale * (counts[expert] - mean) - of_all);
            for (int64_t j = 0; j < shape.top_k; j++) {
                sum += chosen[j] == expert ? gates[j] * (gradients[j] - of_chosen) : 0.0f;
            }
            sum *= shape.score == ROUTER_SIGMOID ? 1.0f - score(scores, logits[expert]) : 1.0f;
            low_precision((T *)args.logits_gradient + row * shape.experts + expert, sum);
        }
    }
}
}    // namespace

int kernel_route_backward(const struct route_backward_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_warps(args->shape.rows, target->multiprocessors);
    return with_type(args->type,
                     [&](auto type) { return enqueue(backward_kernel<decltype(type)>, launch, 0, target, *args); });
}
