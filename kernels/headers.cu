// SPDX-License-Identifier: MIT
// Compiles what C and CUDA share for the device, so that a change for one does not break the other.
#include "gswbench/dtype.h"
#include "gswbench/random.h"

namespace
{
__global__ void fill_kernel(bf16 *out, uint64_t key, int64_t elements)
{
    int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index < elements) {
        out[index] = bf16_from_float(random_normal(key, (uint64_t)index) + bf16_to_float(out[index]));
    }
}
}    // namespace

cudaError_t headers_fill(bf16 *out, uint64_t key, int64_t elements, cudaStream_t stream)
{
    fill_kernel<<<(unsigned)((elements + 255) / 256), 256, 0, stream>>>(out, key, elements);
    return cudaGetLastError();
}
