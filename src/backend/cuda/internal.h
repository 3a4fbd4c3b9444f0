// SPDX-License-Identifier: MIT
// What the cuda backend's ops share: the device, a stream for each lane, scratch, and the check of every call.
#ifndef GSWBENCH_CUDA_INTERNAL_H
#define GSWBENCH_CUDA_INTERNAL_H

#include <cuda_runtime_api.h>

#include "gswbench/backend.h"
#include "kernels/quantize.h"

struct cuda {
    int               device;
    int               capability;             // 90: compute capability 9.0
    int               processors;             // multiprocessors
    int               shared_bytes;           // of shared memory that a block may ask for
    cudaStream_t      streams[LANE_COUNT];    // transfers' at high priority
    struct gemms     *gemms;                  // what matrix products need
    struct attention *attention;              // who computes it
    void             *scratch;                // as large as the largest scratch_bytes; of the compute lane
    cudaGraphExec_t   graph;                  // the captured step; NULL: none
};

// Ends the job when a call of the runtime, or a launcher of kernels/, fails.
#define CUDA_CHECK(call) cuda_check((cudaError_t)(call), #call, __FILE__, __LINE__)
void cuda_check(cudaError_t error, const char *call, const char *file, int line);

// The stream of the op's lane.
cudaStream_t cuda_stream(const struct backend *backend, const struct op *op);

// The stream of the op's lane and the device's size, as launch functions take them.
struct kernel_target cuda_target(const struct backend *backend, const struct op *op);

// The element type that two of the op's operands share; kernels have no other combination.
enum dtype cuda_type(const struct op *op, const struct buffer buffers[], int slot, int other);

// What makes the copies that are fused to an op; in: its output, may be absent.
struct quantize_args cuda_fused_copies(const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// The ops. Each enqueues on the stream of its lane; nothing allocates, waits or decides.
op_run cuda_gemm;
status cuda_gemm_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);
op_run cuda_embedding_forward, cuda_embedding_backward, cuda_norm_forward, cuda_norm_backward, cuda_rope_forward,
    cuda_rope_backward, cuda_attention_merge, cuda_activation_forward, cuda_activation_backward, cuda_route_forward,
    cuda_route_backward, cuda_dispatch, cuda_combine, cuda_combine_backward, cuda_logit_statistics, cuda_cross_entropy,
    cuda_loss_sum, cuda_cast, cuda_quantize, cuda_transpose, cuda_magnitude, cuda_rescale, cuda_clear, cuda_square_sum,
    cuda_clip, cuda_adamw;

// Bytes of scratch that an op needs.
typedef int64_t cuda_scratch(const struct op *op, const struct kernel_target *target);
cuda_scratch    cuda_embedding_backward_scratch, cuda_norm_backward_scratch, cuda_route_forward_scratch,
    cuda_quantize_scratch, cuda_square_sum_scratch;

void    cuda_attention_open(struct cuda *cuda, const struct backend_setup *setup);
void    cuda_attention_close(struct cuda *cuda);
status  cuda_attention_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);
int64_t cuda_attention_scratch(const struct cuda *cuda, const struct op *op);
op_run  cuda_attention;
void    cuda_attention_describe(const struct cuda *cuda, char *text, size_t bytes);    // ", attention by ..."

extern const struct backend_streams cuda_streams;

#endif
