// SPDX-License-Identifier: MIT
// Memory of the emulated device: the process's own.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

extern "C" {
// Poisoned, so that what is not written shows.
cudaError_t cudaMalloc(void **data, size_t bytes)
{
    *data = aligned_alloc(256, (bytes + 256) / 256 * 256);
    memset(*data, 0xff, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *data)
{
    free(data);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **data, size_t bytes)
{
    return cudaMalloc(data, bytes);
}
cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() {
        memcpy(to, from, bytes);
        emulator::count(&emulator_traffic::copied_bytes, (int64_t)bytes);
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() { memset(to, value, bytes); });
    return cudaSuccess;
}
}
