// SPDX-License-Identifier: MIT
// Times several implementations of the same work on the device and returns the fastest.
#ifndef GSWBENCH_CUDA_TUNE_H
#define GSWBENCH_CUDA_TUNE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gswbench/gemm.h"

struct tune {
    cudaStream_t stream;
    // Enqueues one run of a candidate; false: it does not run.
    bool (*run)(void *work, int candidate);
    void *work;
    int   count;       // number of candidates, at most GEMM_CANDIDATES
    bool  is_first;    // the device is idle and needs a long warm-up
};

// Returns the candidate with the smallest median, or -1 if none runs. Fills times with the medians; a much slower
// candidate has only one measurement.
int tune_fastest(const struct tune *tune, struct gemm_times *times);

#endif
