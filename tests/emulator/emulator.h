// SPDX-License-Identifier: MIT
// CUDA's language on the processor, for kernels that use no instructions of a device: the threads of a block take
// turns, each runs until it waits for others. Included in front of every kernel file, which is then C++.
#ifndef GSWBENCH_TESTS_EMULATOR_H
#define GSWBENCH_TESTS_EMULATOR_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_runtime_api.h"

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ thread_local    // all threads of all blocks are one of the process

using std::max;
using std::min;

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}

inline thread_local uint4 dynamic_shared_words[(227 << 10) / sizeof(uint4)];

struct dim3 {
    uint32_t x;
    dim3(uint32_t count = 1) : x(count)
    {
    }
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;    // of the thread that runs

// Runs body for every thread of every block. Each warp runs as far as it can before the next begins, in ascending order
// or, with emulator_is_reversed, in descending order: a kernel that lacks a barrier gives wrong or different results.
// Aborts where threads wait for different barriers.
void emulator_run(uint32_t blocks, uint32_t threads, size_t shared_bytes, void (*body)(void *), void *context);
extern "C" bool emulator_is_reversed;

// Waits for the threads of the warp, or of the block, and returns what thread number `from` of it has brought.
uint64_t emulator_exchange_in_warp(uint64_t value, uint32_t from);
uint32_t emulator_count(bool flag, bool is_whole_block, uint32_t *flags_of_warp);
void     emulator_synchronize(bool is_whole_block);

static inline void __syncthreads()
{
    emulator_synchronize(true);
}
static inline void __syncwarp()
{
    emulator_synchronize(false);
}
static inline int __syncthreads_count(bool flag)
{
    return (int)emulator_count(flag, true, nullptr);
}
static inline uint32_t __ballot_sync(uint32_t, bool flag)
{
    uint32_t flags;
    emulator_count(flag, false, &flags);
    return flags;
}
template <typename T> static inline T __shfl_sync(uint32_t, T value, int from)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(value));
    bits = emulator_exchange_in_warp(bits, (uint32_t)from);
    memcpy(&value, &bits, sizeof(value));
    return value;
}
template <typename T> static inline T __shfl_xor_sync(uint32_t mask, T value, int distance)
{
    return __shfl_sync(mask, value, (int)(threadIdx.x % 32) ^ distance);
}

static inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}
static inline float __uint_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
static inline int __popc(uint32_t bits)
{
    return __builtin_popcount(bits);
}
static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

struct cudaLaunchConfig_t {
    dim3         gridDim, blockDim;
    size_t       dynamicSmemBytes;
    cudaStream_t stream;
};
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };

template <typename Kernel> static inline cudaError_t cudaFuncSetAttribute(Kernel, int, int)
{
    return cudaSuccess;
}
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             const Arguments &...arguments)
{
    auto body = [&] { kernel(arguments...); };
    emulator_run(
        config->gridDim.x, config->blockDim.x, config->dynamicSmemBytes,
        [](void *context) { (*static_cast<decltype(body) *>(context))(); }, &body);
    return cudaSuccess;
}

#endif
