// SPDX-License-Identifier: MIT
// Declares the cuda backend's state and error checks. device/internal.h has the part of the state that needs no CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "../device/internal.h"
#include "gswbench/backend.h"
#include "gswbench/number.h"

struct cuda {
    struct device     device;        // state for the built-in kernels
    int               number;        // CUDA device ordinal
    int               capability;    // 90: compute capability 9.0
    struct gemms     *gemms;
    struct attention *attention;
    int               tuned;      // GEMM and attention problems timed so far; 0: the device needs a warm-up
    cudaGraphExec_t   graph;      // graph of the captured step, or NULL
    struct digest    *digests;    // device memory: the result, then a partial digest per block; NULL: not yet used
};

enum { CUDA_ALIGNMENT = 256 };    // alignment of cudaMalloc

// Rounds a size up to CUDA_ALIGNMENT, so that the next piece of a buffer is aligned.
static inline int64_t cuda_align(int64_t bytes)
{
    return number_round_up(bytes, CUDA_ALIGNMENT);
}

// Allocates device memory for trial runs before the first step; cudaFree frees it. If it does not fit, fails with
// EXIT_MEMORY and a text with "to PURPOSE: REMEDY".
status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data);

// Ends the job if a CUDA runtime call fails. While this thread captures a graph, it only records the failure, because
// captured calls are not executed yet. cuda_capture_end returns it.
#define CUDA_CHECK(call) cuda_check((int)(call), #call, __FILE__, __LINE__)
void cuda_check(int error, const char *call, const char *file, int line);
void cuda_failed(const char *reason, const char *call, const char *file, int line);

// cuda_capture_begin starts to record failures on this thread. cuda_capture_end stops, and returns the first one.
void   cuda_capture_begin(void);
status cuda_capture_end(void);
bool   cuda_is_capturing(void);

int          cuda_attribute(int device, enum cudaDeviceAttr attribute);
cudaStream_t cuda_stream(const struct backend *backend, const struct op *op);

// Implementations of backend_ops.prepare in gemm.c and attention.c. A prepared op only enqueues: it does not allocate,
// synchronize or select an algorithm. The exception is a GEMM with a number of rows that did not occur before (dropless
// MoE).
typedef status cuda_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                            const struct prepared **prepared);
cuda_prepare   cuda_gemm_prepare, cuda_attention_prepare;

void    cuda_attention_open(struct cuda *cuda, const struct backend_setup *setup);
void    cuda_attention_close(struct cuda *cuda);
void    cuda_attention_name(const struct cuda *cuda, const struct op *op, char problem[GEMM_PROBLEM_BYTES]);
int64_t cuda_attention_scratch(struct cuda *cuda, const struct op *op);
void    cuda_attention(struct backend *backend, struct backend_attention *attention);    // backend_ops.attention

void cuda_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest);

extern const struct backend_streams  cuda_streams;
extern const struct backend_activity cuda_activity;
