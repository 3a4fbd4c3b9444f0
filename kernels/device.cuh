// SPDX-License-Identifier: MIT
// Defines device code that all kernels share: vectorised loads and stores of fp32 and bf16, warp and block reductions,
// template dispatch by type, and kernel launches.
#pragma once

#include <stdint.h>

#include "gswbench/format.h"
#include "launch.h"

// Carries a template argument as a value. with_value, with_type and with_flag turn a run-time value into a constant and
// pass it to a lambda. The lambda uses constant::value as a template argument of a kernel.
template <auto number> struct constant {
    static constexpr auto value = number;
};

// Calls the body with the constant that equals value. Returns an error if no constant equals it.
template <auto first, auto... others, typename Value, typename Body> static int with_value(Value value, Body body)
{
    if (value == first) {
        return body(constant<first>());
    }
    if constexpr (sizeof...(others) > 0) {
        return with_value<others...>(value, body);
    }
    return cudaErrorInvalidValue;
}

template <typename Body> static int with_flag(bool flag, Body body)
{
    return flag ? body(constant<true>()) : body(constant<false>());
}

template <typename Body> static int with_type(enum format format, Body body)
{
    switch (format) {
    case FORMAT_F32:
        return body(float());
    case FORMAT_BF16:
        return body(bf16());
    default:
        return cudaErrorInvalidValue;
    }
}

// Combines with_type and with_flag, for kernels that load packets of eight elements. is_wide: all packets are whole and
// aligned.
template <typename Body> static int with_packets(enum format format, bool is_wide, Body body)
{
    return with_type(format,
                     [&](auto type) { return with_flag(is_wide, [&](auto wide) { return body(type, wide); }); });
}

// Passes the type of activations and the type of weight gradients to the body. Gradients are fp32 or have the type of
// the activations.
template <typename Body> static int with_types(enum format activation, enum format gradient, Body body)
{
    if (gradient == FORMAT_F32) {
        return with_type(activation, [&](auto type) { return body(type, float()); });
    }
    return activation == gradient ? with_type(activation, [&](auto type) { return body(type, type); })
                                  : (int)cudaErrorInvalidValue;
}

// Returns the bitwise or of array addresses, for launch_is_wide.
template <typename... Pointers> static uintptr_t addresses(Pointers... pointers)
{
    return (... | (uintptr_t)pointers);
}

// Dynamic shared memory that every kernel can use without opt-in: 48 KiB minus 2 KiB for static arrays.
constexpr int64_t every_device_has = 46 << 10;

// Opts in to more dynamic shared memory if the kernel needs it.
template <typename... Parameters> static cudaError_t allow_shared(void (*kernel)(Parameters...), int64_t shared_bytes)
{
    return shared_bytes > every_device_has
               ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes)
               : cudaSuccess;
}

// Returns the number of blocks of a kernel that an SM runs at once. Returns at least 1: a launch that is not possible
// fails in enqueue.
template <typename... Parameters>
static int resident_blocks(void (*kernel)(Parameters...), uint32_t threads, int64_t shared_bytes)
{
    int blocks = 0;
    if (allow_shared(kernel, shared_bytes) == cudaSuccess) {
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)threads, (size_t)shared_bytes);
    }
    return blocks > 0 ? blocks : 1;
}

template <typename... Parameters, typename... Arguments>
static int enqueue_grid(void (*kernel)(Parameters...), dim3 blocks, uint32_t threads, int64_t shared_bytes,
                        const struct kernel_target *target, const Arguments &...arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim            = blocks;
    config.blockDim           = dim3(threads);
    config.dynamicSmemBytes   = (size_t)shared_bytes;
    config.stream             = target->stream;
    cudaError_t error         = allow_shared(kernel, shared_bytes);
    return error == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, arguments...) : error;
}

template <typename... Parameters, typename... Arguments>
static int enqueue(void (*kernel)(Parameters...), struct launch launch, int64_t shared_bytes,
                   const struct kernel_target *target, const Arguments &...arguments)
{
    return enqueue_grid(kernel, dim3(launch.blocks), launch.threads, shared_bytes, target, arguments...);
}

// Returns a launch with one block per row, in which a thread handles one packet of eight elements at a time.
static inline struct launch launch_packets(int64_t rows, int64_t columns, const struct kernel_target *target)
{
    return launch_rows(rows, launch_groups(columns, LAUNCH_WIDTH), LAUNCH_THREADS, target->multiprocessors);
}

// Number of elements of a packet, as a short name.
constexpr int width = LAUNCH_WIDTH;

// Calls body(0) to body(count - 1), unrolled, so that arrays with these indices stay in registers.
template <int count = width, typename Body> static __device__ inline void each(Body body)
{
#pragma unroll
    for (int i = 0; i < count; i++) {
        body(i);
    }
}

// Bounds checks of indices read from memory, in builds with GSWBENCH_CHECKED. An index out of bounds traps.
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

// LAUNCH_WIDTH (8) adjacent elements in registers, in the format that they have in memory. A kernel fetches several
// packets before it unpacks the first, so that their loads are in flight together.
template <typename T> struct packet {
    uint4 word[LAUNCH_WIDTH * sizeof(T) / sizeof(uint4)];
};

static __device__ inline float widen(float value)
{
    return value;
}
static __device__ inline float widen(bf16 value)
{
    return bf16_to_float(value);
}

// Rounds two values to bf16, to nearest even, and returns them in a word. The first is in the low half.
static __device__ inline uint32_t low_precision_pair(float first, float second)
{
#ifdef __CUDA_ARCH__
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
#else
    return bf16_from_float(first) | (uint32_t)bf16_from_float(second) << 16;
#endif
}

static __device__ inline void low_precision(float *to, float value)
{
    *to = value;
}
static __device__ inline void low_precision(bf16 *to, float value)
{
    *to = (bf16)low_precision_pair(value, 0.0f);
}

template <typename T> static __device__ inline void unpack(float (&values)[LAUNCH_WIDTH], const packet<T> &from)
{
#pragma unroll
    for (int i = 0; i < LAUNCH_WIDTH; i += sizeof(uint4) / sizeof(T)) {
        const uint4   &word     = from.word[i * sizeof(T) / sizeof(uint4)];
        const uint32_t words[4] = {word.x, word.y, word.z, word.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if constexpr (sizeof(T) == sizeof(float)) {
                values[i + j] = __uint_as_float(words[j]);
            } else {
                values[i + 2 * j]     = __uint_as_float(words[j] << 16);
                values[i + 2 * j + 1] = __uint_as_float(words[j] & 0xffff0000u);
            }
        }
    }
}

template <typename T> static __device__ inline packet<T> pack(const float (&values)[LAUNCH_WIDTH])
{
    packet<T> to;
#pragma unroll
    for (int i = 0; i < LAUNCH_WIDTH; i += sizeof(uint4) / sizeof(T)) {
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if constexpr (sizeof(T) == sizeof(float)) {
                words[j] = __float_as_uint(values[i + j]);
            } else {
                words[j] = low_precision_pair(values[i + 2 * j], values[i + 2 * j + 1]);
            }
        }
        to.word[i * sizeof(T) / sizeof(uint4)] = make_uint4(words[0], words[1], words[2], words[3]);
    }
    return to;
}

// Returns the number of elements of the packet that starts at `at` in an array of `total` elements.
template <bool is_wide> static __device__ inline int packet_elements(int64_t at, int64_t total)
{
    return is_wide || total - at >= LAUNCH_WIDTH ? (int)LAUNCH_WIDTH : (int)(total - at);
}

// Loads the first count elements of a packet; the others become zero. is_wide: `from` is 16-byte aligned, and a whole
// packet is loaded with vector loads.
template <bool is_wide, typename T> static __device__ inline packet<T> fetch(const T *from, int count = LAUNCH_WIDTH)
{
    if (is_wide && count == LAUNCH_WIDTH) {
        return *reinterpret_cast<const packet<T> *>(from);
    }
    float values[LAUNCH_WIDTH];
#pragma unroll
    for (int i = 0; i < width; i++) {
        values[i] = i < count ? widen(from[i]) : 0.0f;
    }
    return pack<T>(values);
}

// Stores the first count elements to global memory. __stwb keeps the store one instruction. For a plain 16-byte
// assignment the compiler may emit four stores, if the values come from several branches.
template <bool is_wide, typename T>
static __device__ inline void put(T *to, const packet<T> &from, int count = LAUNCH_WIDTH)
{
    if (is_wide && count == LAUNCH_WIDTH) {
#pragma unroll
        for (int i = 0; i < (int)(sizeof(from) / sizeof(uint4)); i++) {
            __stwb(reinterpret_cast<uint4 *>(to) + i, from.word[i]);
        }
        return;
    }
    float values[LAUNCH_WIDTH];
    unpack(values, from);
#pragma unroll
    for (int i = 0; i < LAUNCH_WIDTH; i++) {
        if (i < count) {
            low_precision(to + i, values[i]);
        }
    }
}

template <bool is_wide, typename T>
static __device__ inline void load(float (&values)[LAUNCH_WIDTH], const T *from, int count = LAUNCH_WIDTH)
{
    unpack(values, fetch<is_wide>(from, count));
}

template <bool is_wide, typename T>
static __device__ inline void store(T *to, const float (&values)[LAUNCH_WIDTH], int count = LAUNCH_WIDTH)
{
    put<is_wide>(to, pack<T>(values), count);
}

// Overwrites the elements in memory, or adds the values to them in fp32 and rounds once.
template <bool is_wide, typename T>
static __device__ inline void store_sum(T *to, float (&values)[LAUNCH_WIDTH], int count, bool accumulates)
{
    if (accumulates) {
        float before[LAUNCH_WIDTH];
        load<is_wide>(before, to, count);
        each([&](int i) { values[i] += before[i]; });
    }
    store<is_wide>(to, values, count);
}

// Return the index of this thread or warp in the grid, and the number of threads or warps of the grid.
static __device__ inline int64_t own_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
static __device__ inline int64_t own_warp()
{
    return own_thread() / LAUNCH_WARP;
}
static __device__ inline int64_t all_threads()
{
    return (int64_t)gridDim.x * blockDim.x;
}
static __device__ inline int64_t all_warps()
{
    return all_threads() / LAUNCH_WARP;
}

// Prefetches to the L2 cache; does nothing before compute capability 9.0. Address and size are multiples of 16 bytes.
static __device__ inline void fetch_ahead(const void *from, int64_t bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((uint32_t)bytes) : "memory");
#else
    (void)from;
    (void)bytes;
#endif
}

template <typename T> static __device__ inline T warp_sum(T value)
{
#pragma unroll
    for (int distance = LAUNCH_WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    }
    return value;
}

static __device__ inline float warp_maximum(float value)
{
#pragma unroll
    for (int distance = LAUNCH_WARP / 2; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

// Sums each of the values over the threads of the block; every thread receives the sums. The order depends only on the
// block size. All threads must call it, and the block must consist of whole warps.
template <typename T, int count> static __device__ inline void block_sum(T (&values)[count])
{
    __shared__ T sums[count][LAUNCH_WARP];
    int          lane = threadIdx.x % LAUNCH_WARP, warp = threadIdx.x / LAUNCH_WARP, warps = blockDim.x / LAUNCH_WARP;
    __syncthreads();    // all threads have read the sums of the previous call
#pragma unroll
    for (int i = 0; i < count; i++) {
        values[i] = warp_sum(values[i]);
        if (lane == 0) {
            sums[i][warp] = values[i];
        }
    }
    __syncthreads();
    each<count>([&](int i) { values[i] = warp_sum(lane < warps ? sums[i][lane] : T(0)); });
}

template <typename T> static __device__ inline T block_sum(T value)
{
    T values[1] = {value};
    block_sum(values);
    return values[0];
}

static __device__ inline float block_maximum(float value)
{
    __shared__ float maxima[LAUNCH_WARP];
    int              lane = threadIdx.x % LAUNCH_WARP, warp = threadIdx.x / LAUNCH_WARP;
    __syncthreads();
    value = warp_maximum(value);
    if (lane == 0) {
        maxima[warp] = value;
    }
    __syncthreads();
    return warp_maximum(maxima[lane < (int)(blockDim.x / LAUNCH_WARP) ? lane : 0]);
}

// Returns the start of the block's dynamic shared memory.
template <typename T> static __device__ inline T *dynamic_shared()
{
    extern __shared__ uint4 dynamic_shared_words[];
    return reinterpret_cast<T *>(dynamic_shared_words);
}
