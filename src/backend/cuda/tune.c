// SPDX-License-Identifier: MIT
// Times candidates in rounds, a run of each after the other: what the device's clock does meanwhile it does to all.
#include "tune.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/clock.h"
#include "internal.h"

enum { ROUNDS = 9 };

// A device that comes from rest takes about a second until its power, and with it its clock, is steady; what the host
// does between two timings lets it rest a little.
static const double first_warm_up_seconds = 1, warm_up_seconds = 0.05;

struct timing {
    const struct tune *tune;
    cudaEvent_t        begin, end;
    float              times[GEMM_CANDIDATES][ROUNDS];    // in milliseconds; [0] is negative: it does not run
};

static float milliseconds_between(cudaEvent_t begin, cudaEvent_t end)
{
    float milliseconds;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds;
}

static int compare_times(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return a < b ? -1 : a > b;
}

static void warm_up(const struct tune *tune, int candidate)
{
    double seconds = tune->is_first ? first_warm_up_seconds : warm_up_seconds;
    for (double begin = clock_seconds(); clock_seconds() - begin < seconds;) {
        if (!tune->run(tune->work, candidate)) {
            return;
        }
        CUDA_CHECK(cudaStreamSynchronize(tune->stream));
    }
}

static float time_once(const struct timing *timing, int candidate)
{
    const struct tune *tune = timing->tune;
    CUDA_CHECK(cudaEventRecord(timing->begin, tune->stream));
    if (!tune->run(tune->work, candidate)) {
        return -1;
    }
    CUDA_CHECK(cudaEventRecord(timing->end, tune->stream));
    CUDA_CHECK(cudaStreamSynchronize(tune->stream));
    return milliseconds_between(timing->begin, timing->end);
}

static void time_candidates(struct timing *timing)
{
    const struct tune *tune  = timing->tune;
    int                first = -1;
    for (int i = 0; i < tune->count; i++) {    // the first run of a candidate loads it
        timing->times[i][0] = tune->run(tune->work, i) ? 0 : -1;
        first               = first < 0 && timing->times[i][0] >= 0 ? i : first;
    }
    if (first >= 0) {
        warm_up(tune, first);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < tune->count; i++) {
            if (timing->times[i][0] >= 0) {
                timing->times[i][round] = time_once(timing, i);
            }
        }
    }
}

// Sorts the candidates' times.
static int find_fastest(struct timing *timing)
{
    int best = -1;
    for (int i = 0; i < timing->tune->count; i++) {
        if (timing->times[i][0] < 0) {
            continue;
        }
        qsort(timing->times[i], ROUNDS, sizeof(float), compare_times);
        if (best < 0 || timing->times[i][ROUNDS / 2] < timing->times[best][ROUNDS / 2]) {
            best = i;
        }
    }
    return best;
}

int tune_fastest(const struct tune *tune, struct gemm_times *times)
{
    struct timing timing = {.tune = tune};
    CUDA_CHECK(cudaEventCreate(&timing.begin));
    CUDA_CHECK(cudaEventCreate(&timing.end));
    time_candidates(&timing);
    int best = find_fastest(&timing);
    CUDA_CHECK(cudaEventDestroy(timing.begin));
    CUDA_CHECK(cudaEventDestroy(timing.end));
    times->count  = tune->count;
    times->chosen = best;
    for (int i = 0; i < tune->count; i++) {
        bool runs         = timing.times[i][0] >= 0;
        times->seconds[i] = runs ? 1e-3 * (double)timing.times[i][ROUNDS / 2] : NAN;
    }
    return best;
}
