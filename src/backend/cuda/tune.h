// SPDX-License-Identifier: MIT
// Which of several ways to do the same is the fastest on the device, by timing them.
#ifndef GSWBENCH_CUDA_TUNE_H
#define GSWBENCH_CUDA_TUNE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gswbench/gemm.h"

struct tune {
    cudaStream_t stream;
    // Enqueues one run of a candidate; false: it is refused after all.
    bool (*run)(void *work, int candidate);
    void *work;
    int   count;       // of candidates, GEMM_CANDIDATES at most
    bool  is_first;    // the device comes from rest
};

// The candidate of the smallest median; -1: none runs. Fills times: medians, or of a candidate that is much slower than
// the fastest its only time.
int tune_fastest(const struct tune *tune, struct gemm_times *times);

#endif
