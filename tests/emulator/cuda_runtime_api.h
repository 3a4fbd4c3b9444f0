// SPDX-License-Identifier: MIT
// Stands in front of the toolkit's header of this name where kernels run on the processor: device memory is the
// process's own, and a stream has done all its work when a call returns.
#ifndef GSWBENCH_TESTS_CUDA_RUNTIME_API_H
#define GSWBENCH_TESTS_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <string.h>

typedef enum { cudaSuccess, cudaErrorInvalidValue } cudaError_t;
typedef struct CUstream_st    *cudaStream_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUevent_st     *cudaEvent_t;

static inline const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "invalid argument";
}

static inline cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(data, value, bytes);
    return cudaSuccess;
}

#endif
