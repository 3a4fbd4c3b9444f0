// SPDX-License-Identifier: MIT
// How kernels are laid out over a device: blocks, threads and the width of their accesses, as functions of sizes alone.
#ifndef GSWBENCH_KERNELS_LAUNCH_H
#define GSWBENCH_KERNELS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"

#ifdef __cplusplus
#define KERNEL_FUNCTION extern "C"
#else
#define KERNEL_FUNCTION
#endif

// Where a kernel runs. A launch function returns 0 or a cudaError_t; it neither waits nor allocates.
struct kernel_target {
    struct CUstream_st *stream;
    int32_t             multiprocessors;
    int32_t             shared_bytes;    // that one block may ask for
};

// A thread takes LAUNCH_WIDTH neighbouring elements at a time: 16 bytes of bf16, twice 16 of fp32.
enum { LAUNCH_WIDTH = 8, LAUNCH_WARP = 32, LAUNCH_THREADS = 256, LAUNCH_RESIDENT_THREADS = 2048 };

struct launch {
    uint32_t blocks, threads;    // never 0: a kernel without work is a block that finds none
};

GSWBENCH_INLINE int64_t launch_minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// How many groups of size hold count.
GSWBENCH_INLINE int64_t launch_groups(int64_t count, int64_t size)
{
    return count / size + (count % size > 0);
}

// Whether every row starts on 16 bytes. addresses: those of all arrays, or-ed.
GSWBENCH_INLINE bool launch_is_wide(int64_t columns, uintptr_t addresses)
{
    return columns % LAUNCH_WIDTH == 0 && addresses % 16 == 0;
}

// Whole warps for that many items, at most most_threads.
GSWBENCH_INLINE uint32_t launch_threads(int64_t items, int64_t most_threads)
{
    int64_t warps = launch_groups(launch_minimum(items, most_threads), LAUNCH_WARP);
    return (uint32_t)((warps > 0 ? warps : 1) * LAUNCH_WARP);
}

// As many blocks as there is work for and the device holds; each then takes every blocks-th piece.
GSWBENCH_INLINE uint32_t launch_blocks(int64_t pieces, int64_t threads, int32_t multiprocessors)
{
    int64_t blocks = launch_minimum(pieces, multiprocessors * (LAUNCH_RESIDENT_THREADS / threads));
    return (uint32_t)(blocks > 0 ? blocks : 1);
}

// As many blocks as there is work for and as stay resident, of which a multiprocessor holds so many: more would run in
// waves, of which the last leaves most of the device idle.
GSWBENCH_INLINE uint32_t launch_resident_blocks(int64_t pieces, int32_t resident, int32_t multiprocessors)
{
    return (uint32_t)launch_minimum(pieces > 0 ? pieces : 1, (int64_t)resident * multiprocessors);
}

// A block a row, its threads along the row's items, of which each takes as many as any other or one less.
GSWBENCH_INLINE struct launch launch_rows(int64_t rows, int64_t items, int64_t most_threads, int32_t multiprocessors)
{
    int64_t  each    = launch_groups(items, most_threads);
    uint32_t threads = launch_threads(launch_groups(items, each > 0 ? each : 1), most_threads);
    return (struct launch){launch_blocks(rows, threads, multiprocessors), threads};
}

// A thread an item.
GSWBENCH_INLINE struct launch launch_items(int64_t items, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(items, LAUNCH_THREADS);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}

// A warp a row.
GSWBENCH_INLINE struct launch launch_warps(int64_t rows, int32_t multiprocessors)
{
    int64_t pieces = launch_groups(rows, LAUNCH_THREADS / LAUNCH_WARP);
    return (struct launch){launch_blocks(pieces, LAUNCH_THREADS, multiprocessors), LAUNCH_THREADS};
}

#endif
