// SPDX-License-Identifier: MIT
// Launch configurations as functions of sizes alone: blocks, threads, and the width of memory accesses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"

#ifdef __cplusplus
#define KERNEL_FUNCTION extern "C"
#else
#define KERNEL_FUNCTION
#endif

// Where a kernel runs. Launch functions return 0 or a cudaError_t; they neither synchronize nor allocate.
struct kernel_target {
    struct CUstream_st *stream;
    int32_t             multiprocessors;
    int32_t             shared_bytes;    // maximum per block
};

// A thread handles LAUNCH_WIDTH adjacent elements at a time, a packet: 16 bytes of bf16 or 32 bytes of fp32.
enum { LAUNCH_WIDTH = 8, LAUNCH_WARP = 32, LAUNCH_THREADS = 256, LAUNCH_RESIDENT_THREADS = 2048 };

struct launch {
    uint32_t blocks, threads;    // never 0; without work one block runs and exits
};

GSWBENCH_INLINE int64_t launch_minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Number of groups of size needed for count.
GSWBENCH_INLINE int64_t launch_groups(int64_t count, int64_t size)
{
    return count / size + (count % size > 0);
}

// Whether every row is 16-byte aligned, so that packets load as vectors. addresses: bitwise or of all array addresses.
GSWBENCH_INLINE bool launch_is_wide(int64_t columns, uintptr_t addresses)
{
    return columns % LAUNCH_WIDTH == 0 && addresses % 16 == 0;
}

// Threads for this number of items, in whole warps, at most max_threads.
GSWBENCH_INLINE uint32_t launch_threads(int64_t items, int64_t max_threads)
{
    int64_t warps = launch_groups(launch_minimum(items, max_threads), LAUNCH_WARP);
    return (uint32_t)((warps > 0 ? warps : 1) * LAUNCH_WARP);
}

// Enough blocks for the work, but not more threads than the device holds. Each block handles every blocks-th piece.
GSWBENCH_INLINE uint32_t launch_blocks(int64_t pieces, int64_t threads, int32_t multiprocessors)
{
    int64_t blocks = launch_minimum(pieces, multiprocessors * (LAUNCH_RESIDENT_THREADS / threads));
    return (uint32_t)(blocks > 0 ? blocks : 1);
}

// Enough blocks for the work, but not more than are resident at once, `resident` per SM. More would run in waves, and
// the last wave would leave most of the device idle.
GSWBENCH_INLINE uint32_t launch_resident_blocks(int64_t pieces, int32_t resident, int32_t multiprocessors)
{
    return (uint32_t)launch_minimum(pieces > 0 ? pieces : 1, (int64_t)resident * multiprocessors);
}

// One block per row; items are divided evenly over its threads.
GSWBENCH_INLINE struct launch launch_rows(int64_t rows, int64_t items, int64_t max_threads, int32_t multiprocessors)
{
    int64_t  each    = launch_groups(items, max_threads);
    uint32_t threads = launch_threads(launch_groups(items, each > 0 ? each : 1), max_threads);
    return (struct launch){launch_blocks(rows, threads, multiprocessors), threads};
}

// One thread per item.
GSWBENCH_INLINE struct launch launch_items(int64_t items, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(items, LAUNCH_THREADS);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}

// One warp per row.
GSWBENCH_INLINE struct launch launch_warps(int64_t rows, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(rows, LAUNCH_THREADS / LAUNCH_WARP);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}
