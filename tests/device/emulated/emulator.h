// SPDX-License-Identifier: MIT
// CUDA kernels on the processor, for tests where there is no GPU: the threads of a block are fibers that run until they
// wait for each other, in an order that the test chooses. What a missing or divergent barrier does to a result shows.
// What an order of memory accesses within the device does, and speed, do not.
#ifndef GSWBENCH_TESTS_EMULATOR_H
#define GSWBENCH_TESTS_EMULATOR_H

#include <atomic>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <functional>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#define KERNELS_EMULATED 1
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__    static
#define __shared__      thread_local    // one block runs at a time, on one thread of the process
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __expf expf
#define __logf logf

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

extern thread_local uint4 dynamic_shared_words[(227 << 10) / sizeof(uint4)];

template <typename Kernel> static inline cudaError_t cudaFuncSetAttribute(Kernel *, cudaFuncAttribute, int bytes)
{
    return (size_t)bytes <= sizeof(dynamic_shared_words) ? cudaSuccess : cudaErrorInvalidValue;
}

// As many as show what several blocks on a multiprocessor leave.
template <typename Kernel>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel *, int, size_t)
{
    *blocks = 2;
    return cudaSuccess;
}

// In which order the warps of a block, and the lanes of a warp, take their turns, from now on. 0: rising; 1: falling;
// else: shuffled anew with this seed each time round.
extern "C" void emulator_order(unsigned seed);

// What kernels have done since the count began: packets that they read and that a small cache did not have, as a
// multiprocessor's own would, packets that they wrote, what matrix instructions were fed from shared memory, and the
// operations of these; and what was copied beside kernels. Counting costs time: it begins when it is first asked for.
struct emulator_traffic {
    int64_t read_bytes, written_bytes, fed_bytes, operations, copied_bytes;
};
extern "C" struct emulator_traffic emulator_count(void);    // since the call before

namespace emulator
{
enum { WARP = 32 };

// Runs one block after another; body is what a thread does.
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body);
// Work for a stream: done when its turn comes, at the latest when somebody waits for the stream.
void enqueue(cudaStream_t stream, std::function<void()> work);
// That a kernel is about to be enqueued. Loading one, which the first launch of it does, may wait for all streams:
// where one of them then waits for another process, the emulator ends this one.
void load(const void *kernel);
// From within such work: it takes so much longer, by the events around it.
void spend(float milliseconds);
// Work that waits for other processes, too: made anew whenever it is enqueued, and each time that its graph is
// launched.
struct pending {
    std::function<bool()> is_ready;
    std::function<void()> run;
};
void enqueue_made(cudaStream_t stream, std::function<pending()> make);
bool captures(void);    // whether this thread's calls are kept in a graph
// Of the device: few, so that loops over a grid come round again; with FAKE_SHARING as many as a real one has.
int                         multiprocessors(void);
inline std::atomic<int64_t> taken_bytes{0};    // of the device's memory, by libraries: less is available
inline std::atomic<int>     channels{0};       // of the connection that was opened last, while one is open
inline std::atomic<int>     products_made{0}, products_kept{0};    // descriptions of cuBLASLt's operations
// Does one piece of work of a stream that has some; false: none has.
bool progress(void);

int  wait_block(bool vote);    // how many threads of the block voted
void wait_warp(unsigned mask);
// What the lanes of the warp post in the same call, which every lane of the mask makes: [WARP], of others zeros.
struct posted {
    char bytes[32];

    template <typename T> T as() const
    {
        T value;
        memcpy(&value, bytes, sizeof(T));
        return value;
    }
};
const posted *collect(unsigned mask, const void *own, size_t bytes);
int           lane(void);
// Copies of the running thread that arrive when all but the latest `pending` marks behind them are waited for.
void copy_late(void *to, const void *from, size_t bytes);
void copy_mark(void);
void copy_arrive(int pending);

// That a kernel begins, and that it reads or writes so many bytes.
void begin_launch(void);
void watch(const void *at, int64_t bytes, bool is_write);
// What no cache can hold back.
void count(int64_t emulator_traffic::*what, int64_t amount);

template <typename T> T from_lane(unsigned mask, T value, int lane)
{
    return collect(mask, &value, sizeof(T))[lane].template as<T>();
}
template <typename T> void gather(unsigned mask, const T &own, T (&received)[WARP])
{
    const posted *all = collect(mask, &own, sizeof(T));
    for (int i = 0; i < WARP; i++) {
        received[i] = all[i].template as<T>();
    }
}
}    // namespace emulator

// Arguments are copied when the kernel is launched, as on a device.
template <typename... Parameters, typename... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             const Arguments &...arguments)
{
    cudaLaunchConfig_t how = *config;
    emulator::load((const void *)kernel);
    emulator::enqueue(how.stream, [how, kernel, arguments...]() {
        emulator::run(how.gridDim, how.blockDim, how.dynamicSmemBytes, [&]() { kernel(arguments...); });
    });
    return cudaSuccess;
}

#endif
