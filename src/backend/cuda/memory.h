// SPDX-License-Identifier: MIT
// Device memory that is divided into pieces: alignment, and allocation with an error message.
#ifndef GSWBENCH_CUDA_MEMORY_H
#define GSWBENCH_CUDA_MEMORY_H

#include <stdint.h>

#include "gswbench/status.h"

enum { CUDA_ALIGNMENT = 256 };    // alignment of cudaMalloc

// Size of a piece including padding.
static inline int64_t cuda_align(int64_t bytes)
{
    return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

// Allocates temporary memory for trials before the first step; free it with cudaFree. If it does not fit, fails with
// EXIT_MEMORY and "to PURPOSE: REMEDY".
status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data);

#endif
