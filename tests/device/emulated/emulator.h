// SPDX-License-Identifier: MIT
// The CUDA runtime of an emulated device, for tests where there is no GPU: streams, events and graphs, whose work runs
// on the processor. Kernels run as tests/device/ptx says.
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

// In which order the warps of a block, and the lanes of a warp, take their turns, from now on. 0: rising; 1: falling;
// else: shuffled anew with this seed each time round.
extern "C" void emulator_order(unsigned seed);

namespace emulator
{
// Whether an environment variable is that word; its number, or the other one where it is not set.
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
// Of the device: few, so that loops over a grid come round again.
int                         multiprocessors(void);
inline std::atomic<int64_t> taken_bytes{0};    // of the device's memory, by libraries: less is available
inline std::atomic<int>     products_made{0}, products_kept{0};    // descriptions of cuBLASLt's operations
// Does one piece of work of a stream that has some; false: none has.
bool progress(void);

// Memory that a library allocates for kernels to use: they may touch no other.
void add_memory(void *data, size_t bytes);
void remove_memory(void *data);
}    // namespace emulator
