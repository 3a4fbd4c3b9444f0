// SPDX-License-Identifier: MIT
// Memory of the device that is cut into pieces: how it is aligned, and what is said where there is not enough.
#ifndef GSWBENCH_CUDA_MEMORY_H
#define GSWBENCH_CUDA_MEMORY_H

#include <stdint.h>

#include "gswbench/status.h"

enum { CUDA_ALIGNMENT = 256 };    // of what cudaMalloc returns

// The bytes that a piece takes before the next one.
static inline int64_t cuda_align(int64_t bytes)
{
    return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

// Memory for what is tried before the first step, to be freed by cudaFree. Fails (EXIT_MEMORY) where there is not so
// much, with "to PURPOSE: REMEDY".
status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data);

#endif
