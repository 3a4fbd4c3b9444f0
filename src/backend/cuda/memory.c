// SPDX-License-Identifier: MIT
// Memory of the device that a job can do without: there may be too little of it.
#include "memory.h"

#include "gswbench/number.h"
#include "internal.h"

status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data)
{
    cudaError_t error = cudaMalloc(data, (size_t)bytes);
    if (error == cudaErrorMemoryAllocation) {
        char text[32];
        cudaGetLastError();    // it stands until it is read
        return fail_as(EXIT_MEMORY, "no %s of device memory to %s: %s", number_bytes(text, sizeof(text), (double)bytes),
                       purpose, remedy);
    }
    CUDA_CHECK(error);
    return OK;
}
