// SPDX-License-Identifier: MIT
// Updates the router biases:
//
//   bias += rate if the expert has less than the mean load of its layer, -rate if it has more
//
// The biases balance the load of the experts without an auxiliary loss. One thread block handles one layer.
#include "route.h"

#include "gswbench/arithmetic.h"

#include "device.cuh"

namespace
{
__global__ void __launch_bounds__(LAUNCH_THREADS) balance_kernel(const struct balance_args args)
{
    if (isnan(*args.scale)) {
        return;    // the gradient norm is not finite: skip the update, as AdamW does
    }
    for (int64_t layer = blockIdx.x; layer < args.layers; layer += gridDim.x) {
        const float *loads  = args.loads + layer * (args.experts + 2);
        double       sum[1] = {};
        for (int64_t expert = threadIdx.x; expert < args.experts; expert += blockDim.x) {
            sum[0] += (double)loads[expert];
        }
        block_sum(sum);
        float mean = (float)(sum[0] / (double)args.experts);
        for (int64_t expert = threadIdx.x; expert < args.experts; expert += blockDim.x) {
            args.bias[layer * args.experts + expert] += arithmetic_balance(loads[expert], mean, args.rate);
        }
    }
}
}    // namespace

int kernel_balance(const struct balance_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_rows(args->layers, args->experts, LAUNCH_THREADS, target->multiprocessors);
    return enqueue(balance_kernel, launch, 0, target, *args);
}
