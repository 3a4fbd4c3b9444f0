// SPDX-License-Identifier: MIT
// CUDA runtime of an emulated device, for tests without a GPU: streams, events and graphs whose work runs on the CPU.
// The interpreter in tests/device/ptx runs the kernels.
#pragma once

#include <atomic>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>

#include <cuda_runtime_api.h>

// Order of the warps of a block and of the sides of a branch from now on. 0: ascending; 1: descending; else: shuffled
// with this seed after each barrier.
extern "C" void emulator_order(unsigned seed);

// Function of a library that has no effect.
#define EMULATED_NO_EFFECT(status, name, ...)                                                                          \
    status name(__VA_ARGS__)                                                                                           \
    {                                                                                                                  \
        return (status)0;                                                                                              \
    }

namespace emulator
{
// Whether an environment variable equals the word; its number, or the default if it is unset.
inline bool is_told(const char *variable, const char *word)
{
    const char *told = getenv(variable);
    return told != NULL && strcmp(told, word) == 0;
}
inline double number_told(const char *variable, double otherwise)
{
    const char *told = getenv(variable);
    return told != NULL ? atof(told) : otherwise;
}
// Adds work to a stream. It runs in stream order, at the latest when the stream is synchronized.
void enqueue(cudaStream_t stream, std::function<void()> work);
// Announces a launch. The first launch of a kernel loads it, which may synchronize the device. If a stream waits for
// another process at that time, a real device could hang, so the emulator ends the process.
void load(const void *kernel);
// Called by work: adds to its duration, which events measure.
void spend(float milliseconds);
// Work that may wait for other processes. enqueue_made calls make for each enqueue and each launch of its graph.
struct pending {
    std::function<bool()> is_ready;
    std::function<void()> run;
};
void enqueue_made(cudaStream_t stream, std::function<pending()> make);
bool captures(void);    // whether this thread captures a graph
// Number of SMs: small, so that grid-stride loops iterate.
int                         multiprocessors(void);
inline std::atomic<int64_t> taken_bytes{0};                        // device memory that libraries use
inline std::atomic<int>     products_made{0}, products_kept{0};    // cublasLtMatmulDesc_t objects
// Runs one ready item of a stream; false: none is ready.
bool progress(void);

// Registers memory of a library, so that kernels may access it.
void add_memory(void *data, size_t bytes);
void remove_memory(void *data);
}    // namespace emulator
