// SPDX-License-Identifier: MIT
// Bounds checks of indices read from memory, in builds with GSWBENCH_CHECKED. An index out of bounds traps.
#ifndef GSWBENCH_KERNELS_CHECK_CUH
#define GSWBENCH_KERNELS_CHECK_CUH

#include <stdint.h>

#ifdef GSWBENCH_CHECKED
__device__ inline void check_index(int64_t index, int64_t bound)
{
    if (index < 0 || index >= bound) {
        __trap();
    }
}
#define CHECK_INDEX(index, bound) check_index((index), (bound))
#else
#define CHECK_INDEX(index, bound) ((void)0)
#endif

#endif
