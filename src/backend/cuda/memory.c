// SPDX-License-Identifier: MIT
// Allocation of optional device memory, which may not fit.
#include "memory.h"

#include "gswbench/number.h"
#include "internal.h"

status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data)
{
    cudaError_t error = cudaMalloc(data, (size_t)bytes);
    if (error == cudaErrorMemoryAllocation) {
        char text[32];
        cudaGetLastError();    // resets the last error
        return fail_as(EXIT_MEMORY, "no %s of device memory to %s: %s", number_bytes(text, sizeof(text), (double)bytes),
                       purpose, remedy);
    }
    CUDA_CHECK(error);
    return OK;
}
