// SPDX-License-Identifier: MIT
// Indices that kernels read from memory, checked in builds with GSWBENCH_CHECKED: one that is out of bounds would read
// or write memory of something else.
#ifndef GSWBENCH_KERNELS_CHECK_CUH
#define GSWBENCH_KERNELS_CHECK_CUH

#include <stdint.h>

#ifdef GSWBENCH_CHECKED
#include <stdio.h>

__device__ inline void check_index(int64_t index, int64_t bound, const char *file, int line)
{
    if (index >= 0 && index < bound) {
        return;
    }
    printf("%s:%d: index %lld is not in 0..%lld\n", file, line, (long long)index, (long long)bound - 1);
    __trap();
}
#define CHECK_INDEX(index, bound) check_index((index), (bound), __FILE__, __LINE__)
#else
#define CHECK_INDEX(index, bound) ((void)0)
#endif

#endif
