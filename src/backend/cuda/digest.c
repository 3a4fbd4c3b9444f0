// SPDX-License-Identifier: MIT
// Computes digests of device tensors on the device.
#include "internal.h"
#include "kernels/elements.h"

void cuda_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest)
{
    struct cuda         *cuda   = backend->state;
    cudaStream_t         stream = cuda->device.streams[LANE_COMPUTE];
    struct kernel_target target = {stream, cuda->device.processors, cuda->device.shared_bytes};
    if (cuda->digests == NULL) {
        size_t count = (size_t)(1 + digest_blocks(target.multiprocessors));
        CUDA_CHECK(cudaMalloc((void **)&cuda->digests, count * sizeof(*cuda->digests)));
    }
    CUDA_CHECK(kernel_digest(&(struct digest_args){.in    = buffer->data,
                                                   .out   = cuda->digests,
                                                   .parts = cuda->digests + 1,
                                                   .bytes = format_bytes(buffer->format, buffer->elements),
                                                   .type  = buffer->format},
                             &target));
    CUDA_CHECK(cudaMemcpyAsync(digest, cuda->digests, sizeof(*digest), cudaMemcpyDefault, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}
