// SPDX-License-Identifier: MIT
// What the cuda backend's own ops share beside what all devices have, and the check of every call.
#ifndef GSWBENCH_CUDA_INTERNAL_H
#define GSWBENCH_CUDA_INTERNAL_H

#include <cuda_runtime_api.h>

#include "../device/internal.h"
#include "gswbench/backend.h"

struct cuda {
    struct device     device;        // for the ops that kernels of our own do
    int               number;        // of the device
    int               capability;    // 90: compute capability 9.0
    struct gemms     *gemms;         // what GEMMs need
    struct attention *attention;     // who computes it
    int               tuned;         // problems that were timed: the device no longer comes from rest
    cudaGraphExec_t   graph;         // the captured step; NULL: none
    struct digest    *digests;       // of a tensor, and of each block's part of it, on the device; NULL: none was taken
};

// Ends the job when a call of the runtime fails. While this thread captures a step, the call is kept instead as the
// reason why there is no capture: nothing has been executed.
#define CUDA_CHECK(call) cuda_check((int)(call), #call, __FILE__, __LINE__)
void cuda_check(int error, const char *call, const char *file, int line);
void cuda_failed(const char *reason, const char *call, const char *file, int line);

// op.c: from when on calls are kept; then what was kept, if anything; and whether they are.
void   cuda_capture_begin(void);
status cuda_capture_end(void);
bool   cuda_is_capturing(void);

// The stream of the op's lane.
cudaStream_t cuda_stream(const struct backend *backend, const struct op *op);

// gemm.c, attention.c: what backend_ops has as prepare, of their ops. The prepared op enqueues on the stream of its
// lane; nothing allocates, waits, decides or looks up.
typedef status cuda_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                            const struct prepared **prepared);
cuda_prepare   cuda_gemm_prepare, cuda_attention_prepare;

void    cuda_attention_open(struct cuda *cuda, const struct backend_setup *setup);
void    cuda_attention_close(struct cuda *cuda);
void    cuda_attention_name(const struct cuda *cuda, const struct op *op, char problem[GEMM_PROBLEM_BYTES]);
int64_t cuda_attention_scratch(struct cuda *cuda, const struct op *op);
void    cuda_attention(struct backend *backend, struct backend_attention *attention);    // backend_ops' attention

void cuda_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest);

extern const struct backend_streams  cuda_streams;
extern const struct backend_choices  cuda_choices;
extern const struct backend_activity cuda_activity;

#endif
