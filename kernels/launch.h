// SPDX-License-Identifier: MIT
// Computes launch configurations of kernels: number of blocks and threads, and whether memory accesses are vectorised.
// They depend only on sizes and the device, so that sums have the same order in every run.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"

#ifdef __cplusplus
#define KERNEL_FUNCTION extern "C"
#else
#define KERNEL_FUNCTION
#endif

// The stream on which a kernel is enqueued, and properties of its device. Functions kernel_... return 0 or a
// cudaError_t. They neither synchronize nor allocate.
struct kernel_target {
    struct CUstream_st *stream;
    int32_t             multiprocessors;
    int32_t             shared_bytes;    // maximum shared memory per block
};

// A thread handles a packet of LAUNCH_WIDTH adjacent elements at a time: 16 bytes of bf16 or 32 bytes of fp32.
enum { LAUNCH_WIDTH = 8, LAUNCH_WARP = 32, LAUNCH_THREADS = 256, LAUNCH_RESIDENT_THREADS = 2048 };

struct launch {
    uint32_t blocks, threads;    // at least 1; without work one block starts and exits
};

GSWBENCH_INLINE int64_t launch_minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Returns the number of groups of `size` elements that cover `count` elements.
GSWBENCH_INLINE int64_t launch_groups(int64_t count, int64_t size)
{
    return count / size + (count % size > 0);
}

// Returns whether every row starts at a 16-byte boundary and consists of whole packets, so that vector loads are
// possible. addresses: bitwise or of the array addresses.
GSWBENCH_INLINE bool launch_is_wide(int64_t columns, uintptr_t addresses)
{
    return columns % LAUNCH_WIDTH == 0 && addresses % 16 == 0;
}

// Returns the number of threads for `items` items, one item per thread, in whole warps and at most max_threads.
GSWBENCH_INLINE uint32_t launch_threads(int64_t items, int64_t max_threads)
{
    int64_t warps = launch_groups(launch_minimum(items, max_threads), LAUNCH_WARP);
    return (uint32_t)((warps > 0 ? warps : 1) * LAUNCH_WARP);
}

// Returns the number of blocks: one per piece of work, but not more threads than the device holds. Each block then
// handles every gridDim-th piece.
GSWBENCH_INLINE uint32_t launch_blocks(int64_t pieces, int64_t threads, int32_t multiprocessors)
{
    int64_t blocks = launch_minimum(pieces, multiprocessors * (LAUNCH_RESIDENT_THREADS / threads));
    return (uint32_t)(blocks > 0 ? blocks : 1);
}

// Returns the number of blocks: one per piece of work, and at most the number that runs at once (`resident` per SM).
// More blocks would run in waves, and in the last wave most of the device would be idle.
GSWBENCH_INLINE uint32_t launch_resident_blocks(int64_t pieces, int32_t resident, int32_t multiprocessors)
{
    return (uint32_t)launch_minimum(pieces > 0 ? pieces : 1, (int64_t)resident * multiprocessors);
}

// Returns a launch with one block per row, within the limit of launch_blocks. The items of a row are divided evenly
// among the threads.
GSWBENCH_INLINE struct launch launch_rows(int64_t rows, int64_t items, int64_t max_threads, int32_t multiprocessors)
{
    int64_t  each    = launch_groups(items, max_threads);
    uint32_t threads = launch_threads(launch_groups(items, each > 0 ? each : 1), max_threads);
    return (struct launch){launch_blocks(rows, threads, multiprocessors), threads};
}

// Returns a launch with one thread per item, within the limit of launch_blocks.
GSWBENCH_INLINE struct launch launch_items(int64_t items, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(items, LAUNCH_THREADS);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}

// Returns a launch with one warp per row, within the limit of launch_blocks.
GSWBENCH_INLINE struct launch launch_warps(int64_t rows, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(rows, LAUNCH_THREADS / LAUNCH_WARP);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}
