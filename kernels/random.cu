// SPDX-License-Identifier: MIT
// Fills arrays with normal values. Bound by the generator's integer arithmetic; only ever used before steps.
#include "random.h"

#include "gswbench/random.h"

namespace
{
constexpr int      threads     = 256;
constexpr unsigned most_blocks = 4096;

__global__ void __launch_bounds__(threads) fill_kernel(random_fill_args args)
{
    int64_t stride = (int64_t)gridDim.x * threads;
    for (int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x; i < args.elements; i += stride) {
        float value = random_normal(args.key, (uint64_t)i);
        if (args.dtype == DTYPE_BF16) {
            ((bf16 *)args.out)[i] = bf16_from_float(value);
        } else {
            ((float *)args.out)[i] = value;
        }
    }
}
}    // namespace

cudaError_t random_fill(const random_fill_args *args, cudaStream_t stream)
{
    int64_t  pieces = (args->elements + threads - 1) / threads;
    unsigned blocks = pieces < most_blocks ? (unsigned)pieces : most_blocks;
    if (blocks > 0) {
        fill_kernel<<<blocks, threads, 0, stream>>>(*args);
    }
    return cudaGetLastError();
}
