// SPDX-License-Identifier: MIT
// Operands that look like real ones: power, and so speed, depends on the bits that switch.
#ifndef GSWBENCH_KERNELS_RANDOM_H
#define GSWBENCH_KERNELS_RANDOM_H

#include <cuda_runtime_api.h>

#include "gswbench/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct random_fill_args {
    void      *out;    // [elements], fp32 or bf16
    int64_t    elements;
    enum dtype dtype;
    uint64_t   key;    // of random.h: element i is its normal value i
};
cudaError_t random_fill(const struct random_fill_args *args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
