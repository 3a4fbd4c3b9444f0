// SPDX-License-Identifier: MIT
// Computes the amax of an array, and the update of delayed FP8 scales:
//
//   history = (amax, history without its oldest value), scale = target / max(history)
//
// For the amax, a thread handles eight elements at a time. For the update, one block handles one tensor.
#include "codes.cuh"
#include "quantize.h"
#include "spread.cuh"

namespace
{
template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) magnitude_kernel(const struct magnitude_args args)
{
    float largest = 0;
#pragma unroll 4
    for (spread its(args.elements); its.is_here(); its.advance()) {
        float values[width];
        load<is_wide>(values, (const T *)args.in, its);
        largest = larger(largest, values);
    }
    raise(args.magnitude, largest);
}

// Adds the amax to each tensor's history and updates its scale. The history is shifted from its end, so that every
// value is read before it is overwritten.
__global__ void __launch_bounds__(LAUNCH_THREADS) rescale_kernel(const struct rescale_args args)
{
    for (int64_t slot = blockIdx.x; slot < args.slots; slot += gridDim.x) {
        float largest = args.magnitude[slot];
        if (args.history != NULL) {
            float  *row = args.history + slot * args.length;
            int64_t end = launch_groups(args.length, blockDim.x) * blockDim.x;
            for (int64_t at = end - blockDim.x + threadIdx.x; at >= 0; at -= blockDim.x) {
                float value = at == 0 ? args.magnitude[slot] : at < args.length ? row[at - 1] : 0;
                largest     = fmaxf(largest, value);
                __syncthreads();
                if (at < args.length) {
                    row[at] = value;
                }
            }
        }
        largest = block_maximum(largest);
        if (threadIdx.x == 0) {
            float scale          = scaling_renew(args.scale[slot], args.target, largest);
            args.scale[slot]     = scale;
            args.factor[slot]    = 1 / scale;
            args.magnitude[slot] = 0;
        }
    }
}
}    // namespace

int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    return with_packets(args->type, launch_is_wide(width, addresses(args->in)), [&](auto type, auto is_wide) {
        return enqueue(magnitude_kernel<decltype(type), is_wide.value>, launch, 0, target, *args);
    });
}

int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_rows(args->slots, args->length, LAUNCH_THREADS, target->multiprocessors);
    return enqueue(rescale_kernel, launch, 0, target, *args);
}
