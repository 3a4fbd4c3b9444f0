// SPDX-License-Identifier: MIT
// What the cuda backend's ops share: the device, a stream for each lane, scratch, and the check of every call.
#ifndef GSWBENCH_CUDA_INTERNAL_H
#define GSWBENCH_CUDA_INTERNAL_H

#include <cuda_runtime_api.h>

#include "gswbench/backend.h"

struct cuda {
    int             device;
    int             processors;             // multiprocessors
    cudaStream_t    streams[LANE_COUNT];    // transfers' at high priority
    void           *scratch;                // as large as the largest scratch_bytes; of the compute lane
    cudaGraphExec_t graph;                  // the captured step; NULL: none
};

// Ends the job when a call of the runtime, or a launcher of kernels/, fails.
#define CUDA_CHECK(call) cuda_check((call), #call, __FILE__, __LINE__)
void cuda_check(cudaError_t error, const char *call, const char *file, int line);

// The stream of the op's lane.
cudaStream_t cuda_stream(const struct backend *backend, const struct op *op);

// The ops. Each enqueues on the stream of its lane; nothing allocates, waits or decides.

extern const struct backend_streams cuda_streams;

#endif
