// SPDX-License-Identifier: MIT
// Tests how the fastest candidate is found by timing, with an emulated GPU on which each enqueued item takes 1 ms. A
// candidate that is far from the fastest must be timed only once, and one that fails must be skipped.
#include <math.h>

#include "backend/cuda/internal.h"
#include "backend/cuda/gemm.h"
#include "device.h"

#ifdef GSWBENCH_EMULATED

enum { COUNT = 5, REFUSED = 2 };
static const int items[COUNT] = {2, 3, 0, 1, 4}, nothing[COUNT];

struct work {
    cudaStream_t stream;
    char        *memory;
    const int   *items;    // number of items that each candidate enqueues per run
    int          runs[COUNT];
};

static bool run(void *given, int candidate)
{
    struct work *work = given;
    work->runs[candidate]++;
    for (int i = 0; i < work->items[candidate]; i++) {
        CUDA_CHECK(cudaMemsetAsync(work->memory, 0, 1, work->stream));
    }
    return candidate != REFUSED;
}

int main(void)
{
    struct work       work = {.items = items};
    struct gemm_times times;
    void             *memory;
    device_require();
    CUDA_CHECK(cudaMalloc(&memory, 1));
    CUDA_CHECK(cudaStreamCreateWithPriority(&work.stream, cudaStreamNonBlocking, 0));
    work.memory      = memory;
    struct tune tune = {.stream = work.stream, .run = run, .work = &work, .count = COUNT};
    int         best = tune_fastest(&tune, &times);
    for (int i = 0; i < COUNT; i++) {
        printf("     candidate %d: %d runs, %.6f s\n", i, work.runs[i], times.seconds[i]);
    }
    report(best == 3 && times.chosen == 3, "the fastest is chosen");
    report(work.runs[3] == 10, "it is loaded, and timed in nine rounds");
    report(work.runs[1] == 2 && work.runs[4] == 2, "what is far from it is timed once");
    report(work.runs[REFUSED] == 1 && isnan(times.seconds[REFUSED]), "what does not run has no time");
    report(times.seconds[1] > 2.9 * times.seconds[3] && times.seconds[1] < 3.1 * times.seconds[3],
           "what is timed once keeps its time");
    int before = work.runs[1];
    work.items = nothing;
    report(tune_fastest(&tune, &times) >= 0 && work.runs[1] - before == 1 + 9 * 16, "what is short is repeated");
    CUDA_CHECK(cudaStreamDestroy(work.stream));
    CUDA_CHECK(cudaFree(memory));
    return device_failures > 0;
}

#else

int main(void)
{
    printf("skipped: a real stream has no such clock\n");
    return DEVICE_SKIPPED;
}

#endif
