// SPDX-License-Identifier: MIT
// Fills an array with normal random numbers. A thread handles one element at a time.
#include "gswbench/fp4.h"

#include "device.cuh"
#include "elements.h"

namespace
{
__global__ void __launch_bounds__(LAUNCH_THREADS) fill_kernel(const struct random_fill_args args)
{
    for (int64_t at = own_thread(); at < args.elements; at += all_threads()) {
        float value = random_normal(args.key, (uint64_t)at);
        switch (args.type) {
        case FORMAT_F32:
            low_precision((float *)args.out + at, value);
            break;
        case FORMAT_BF16:
            low_precision((bf16 *)args.out + at, value);
            break;
        case FORMAT_E2M1:    // a byte has two 4-bit codes; the even element writes its code to both
            if (at % 2 == 0) {
                ((uint8_t *)args.out)[at / 2] = (uint8_t)(fp4_from_float(value) * 0x11);
            }
            break;
        default:    // FP8: scaled so that the largest value drawn, about 4.9, nearly fills the range
            ((uint8_t *)args.out)[at] = fp8_from_float(args.type, value * fp8_largest(args.type) / 5);
        }
    }
}
}    // namespace

int kernel_random_fill(const struct random_fill_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_items(args->elements, target->multiprocessors);
    return enqueue(fill_kernel, launch, 0, target, *args);
}
