// SPDX-License-Identifier: MIT
// Compiles what C and CUDA share for the device, so that a change for one does not break the other.
#include "gswbench/arithmetic.h"
#include "gswbench/dtype.h"
#include "gswbench/random.h"

namespace
{
__global__ void every_function_kernel(bf16 *out, uint64_t key, struct arithmetic_adamw adamw)
{
    uint64_t index  = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float    value  = random_normal(key, index) + (float)random_below(key, 0, index, 2) + bf16_to_float(out[index]);
    float    first  = arithmetic_silu(value) + arithmetic_gelu(value) + arithmetic_relu2(value);
    float    second = arithmetic_silu_slope(value) + arithmetic_gelu_slope(value) + arithmetic_relu2_slope(value);
    arithmetic_rotate(&first, &second, value, arithmetic_exp(value));
    arithmetic_adamw_update(&adamw, first, &value, &first, &second);
    out[index * (uint64_t)dtype_bytes(DTYPE_BF16)] = bf16_from_float(value);
}
}    // namespace

cudaError_t headers_every_function(bf16 *out, uint64_t key, struct arithmetic_adamw adamw, cudaStream_t stream)
{
    every_function_kernel<<<1, 1, 0, stream>>>(out, key, adamw);
    return cudaGetLastError();
}
