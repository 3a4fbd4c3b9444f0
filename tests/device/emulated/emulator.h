// SPDX-License-Identifier: MIT
// A CUDA runtime of an emulated GPU, for tests without a GPU. The work of its streams and graphs runs on the CPU. The
// interpreter in tests/device/ptx runs the kernels.
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

// Sets the order of the warps of a block, and of the two sides of a branch. 0 is ascending and 1 is descending. Other
// values shuffle with this seed, again after each barrier.
extern "C" void emulator_order(unsigned seed);

// Defines a function of a library that does nothing and succeeds.
#define EMULATED_NO_EFFECT(status, name, ...)                                                                          \
    status name(__VA_ARGS__)                                                                                           \
    {                                                                                                                  \
        return (status)0;                                                                                              \
    }

namespace emulator
{
// is_told returns whether an environment variable equals the word. number_told returns its number, or the default if it
// is not set.
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
// Must be called before a kernel is launched. The first launch of a kernel loads it, which may synchronize the device.
// If a stream waits for another process then, a real GPU could hang, so the emulator ends the process.
void load(const void *kernel);
// Makes the work that is running take longer on the emulated clock, which events record.
void spend(float milliseconds);
// Work that may wait for other processes. enqueue_made calls `make` each time the work is enqueued, and each time its
// graph is launched.
struct pending {
    std::function<bool()> is_ready;
    std::function<void()> run;
};
void enqueue_made(cudaStream_t stream, std::function<pending()> make);
bool captures(void);    // returns whether this thread captures a graph
// Returns the number of SMs, which is small, so that grid-stride loops iterate.
int                         multiprocessors(void);
int                         most_shared(void);    // returns the maximum bytes of shared memory of a block
inline std::atomic<int64_t> taken_bytes{0};       // device memory that libraries have allocated
// cublasLtMatmulDesc_t objects: created so far, and still alive.
inline std::atomic<int> products_made{0}, products_kept{0};
// Runs an item of a stream that is ready. Returns false if none is ready.
bool progress(void);

// Registers memory that a library has allocated, so that kernels may access it.
void add_memory(void *data, size_t bytes);
void remove_memory(void *data);
}    // namespace emulator
