// SPDX-License-Identifier: MIT
// Times candidates in rounds. A round times every candidate, so that a change of clock affects all of them equally.
// After the first round, slow candidates are dropped.
#include "gemm.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/clock.h"

enum { ROUNDS = 9, RUNS_MAX = 16 };

// Runs shorter than this are repeated between two events, because the first run after an idle stream includes a launch
// latency of a few microseconds.
static const float short_milliseconds = 0.05f;

// After the first round, candidates are dropped if they take longer than this factor times the fastest.
static const float dropped = 1.25f;

// Duration of the warm-up. An idle device needs about a second until its power and clock are steady. Between two
// timings the device idles only briefly, so a shorter warm-up is enough.
static const double first_warm_up_seconds = 1, warm_up_seconds = 0.05;

struct timing {
    const struct tune *tune;
    cudaEvent_t        begin, end;
    int                runs;                              // runs of a candidate between two events
    bool               is_timed[GEMM_CANDIDATES];         // candidate runs and is not dropped
    float              times[GEMM_CANDIDATES][ROUNDS];    // milliseconds per run; NaN: does not run
};

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

// Times a candidate. Returns milliseconds per run, or NaN if the candidate cannot run.
static float time_runs(const struct timing *timing, int candidate)
{
    const struct tune *tune = timing->tune;
    float              milliseconds;
    CUDA_CHECK(cudaEventRecord(timing->begin, tune->stream));
    for (int i = 0; i < timing->runs; i++) {
        if (!tune->run(tune->work, candidate)) {
            return NAN;
        }
    }
    CUDA_CHECK(cudaEventRecord(timing->end, tune->stream));
    CUDA_CHECK(cudaStreamSynchronize(tune->stream));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, timing->begin, timing->end));
    return milliseconds / (float)timing->runs;
}

// Returns the number of runs of a candidate between two events: 1, or for a short run the number that takes about four
// times short_milliseconds, at most RUNS_MAX.
static int runs_of(float milliseconds)
{
    float runs = milliseconds >= short_milliseconds ? 1 : 4 * short_milliseconds / (milliseconds + 1e-6f);
    return runs < RUNS_MAX ? (int)runs : RUNS_MAX;
}

// Times every candidate that is not dropped, and returns the smallest time of this round.
static float time_round(struct timing *timing, int round)
{
    float best = INFINITY;
    for (int i = 0; i < timing->tune->count; i++) {
        if (timing->is_timed[i]) {
            timing->times[i][round] = time_runs(timing, i);
            timing->is_timed[i]     = !isnan(timing->times[i][round]);
            best                    = fminf(best, timing->times[i][round]);
        }
    }
    return best;
}

static void time_candidates(struct timing *timing)
{
    const struct tune *tune  = timing->tune;
    int                first = -1;
    for (int i = 0; i < tune->count; i++) {    // the first run of a candidate loads its kernels
        timing->is_timed[i] = tune->run(tune->work, i);
        timing->times[i][0] = NAN;
        first               = first < 0 && timing->is_timed[i] ? i : first;
    }
    if (first < 0) {
        return;
    }
    warm_up(tune, first);
    timing->runs = 1;
    timing->runs = runs_of(time_runs(timing, first));
    float limit  = dropped * time_round(timing, 0);
    for (int i = 0; i < tune->count; i++) {
        timing->is_timed[i] = timing->is_timed[i] && timing->times[i][0] <= limit;
    }
    for (int round = 1; round < ROUNDS; round++) {
        time_round(timing, round);
    }
}

// Returns the candidate with the smallest median and moves each median to times[0].
static int find_fastest(struct timing *timing)
{
    int best = -1;
    for (int i = 0; i < timing->tune->count; i++) {
        float *times = timing->times[i];
        if (timing->is_timed[i]) {
            qsort(times, ROUNDS, sizeof(float), compare_times);
            times[0] = times[ROUNDS / 2];
            best     = best < 0 || times[0] < timing->times[best][0] ? i : best;
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
        times->seconds[i] = 1e-3 * (double)timing.times[i][0];
    }
    return best;
}
