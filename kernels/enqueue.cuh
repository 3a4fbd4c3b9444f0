// SPDX-License-Identifier: MIT
// Template dispatch by type, and kernel launches.
#ifndef GSWBENCH_KERNELS_ENQUEUE_CUH
#define GSWBENCH_KERNELS_ENQUEUE_CUH

#include <stdint.h>

#include "gswbench/format.h"
#include "launch.h"

// Converts run-time values to template arguments: a launcher passes a lambda whose parameters carry them as types.
template <bool flag> struct constant {
    static constexpr bool value = flag;
};

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

// Types of activations (and weights), and of weight gradients: fp32 gradients, or both the same type.
template <typename Body> static int with_types(enum format activation, enum format gradient, Body body)
{
    if (gradient == FORMAT_F32) {
        return with_type(activation, [&](auto type) { return body(type, float()); });
    }
    return activation == gradient ? with_type(activation, [&](auto type) { return body(type, type); })
                                  : (int)cudaErrorInvalidValue;
}

// Bitwise or of array addresses, for launch_is_wide.
template <typename... Pointers> static uintptr_t addresses(Pointers... pointers)
{
    return (... | (uintptr_t)pointers);
}

// Dynamic shared memory available without opt-in: 48 KiB less static arrays.
constexpr int64_t every_device_has = 46 << 10;

// Opts in to more dynamic shared memory if the kernel needs it.
template <typename... Parameters> static cudaError_t allow_shared(void (*kernel)(Parameters...), int64_t shared_bytes)
{
    return shared_bytes > every_device_has
               ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes)
               : cudaSuccess;
}

// Blocks of a kernel that are resident on an SM, at least 1. An impossible launch fails in enqueue.
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

#endif
