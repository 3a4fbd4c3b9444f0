// SPDX-License-Identifier: MIT
// Helpers of the cuda backend: error checks, capture state, memory for trials, and digests.
#include "gswbench/fatal.h"
#include "internal.h"
#include "kernels/elements.h"

static _Thread_local struct {
    bool   is_running;
    status failure;    // first failure
} capture;

void cuda_capture_begin(void)
{
    capture.is_running = true;
    capture.failure    = OK;
}

status cuda_capture_end(void)
{
    capture.is_running = false;
    return capture.failure;
}

bool cuda_is_capturing(void)
{
    return capture.is_running;
}

void cuda_failed(const char *reason, const char *call, const char *file, int line)
{
    if (!capture.is_running) {
        fatal_at(file, line, EXIT_LOST, "%s: %s", call, reason);
    }
    if (!failed(&capture.failure)) {
        capture.failure = fail_as(EXIT_LOST, "%.300s: %.300s", call, reason);
    }
}

void cuda_check(int error, const char *call, const char *file, int line)
{
    if (error != cudaSuccess) {
        cuda_failed(cudaGetErrorString((cudaError_t)error), call, file, line);
    }
}

cudaStream_t cuda_stream(const struct backend *backend, const struct op *op)
{
    const struct cuda *cuda = backend->state;
    return cuda->device.streams[op->stream];
}

void device_clear(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct buffer *out   = &buffers[CLEAR_OUT];
    size_t               bytes = (size_t)format_bytes(out->format, op->shape.elements.elements);
    CUDA_CHECK(cudaMemsetAsync(out->data, 0, bytes, cuda_stream(backend, op)));
}

status cuda_allocate_for(const char *purpose, const char *remedy, int64_t bytes, void **data)
{
    cudaError_t error = cudaMalloc(data, (size_t)bytes);
    if (error == cudaErrorMemoryAllocation) {
        char text[32];
        cudaGetLastError();    // clears the error, so that later checks do not see it
        return fail_as(EXIT_MEMORY, "no %s of device memory to %s: %s", number_bytes(text, sizeof(text), (double)bytes),
                       purpose, remedy);
    }
    CUDA_CHECK(error);
    return OK;
}

void cuda_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest)
{
    struct cuda         *cuda   = backend->state;
    struct kernel_target target = device_stream_target(&cuda->device, STREAM_COMPUTE);
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
    CUDA_CHECK(cudaMemcpyAsync(digest, cuda->digests, sizeof(*digest), cudaMemcpyDefault, target.stream));
    CUDA_CHECK(cudaStreamSynchronize(target.stream));
}
