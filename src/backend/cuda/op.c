// SPDX-License-Identifier: MIT
// What the cuda backend's own ops share.
#include "gswbench/fatal.h"
#include "internal.h"

void cuda_check(cudaError_t error, const char *call, const char *file, int line)
{
    if (error != cudaSuccess) {
        fatal_at(file, line, EXIT_LOST, "%s: %s", call, cudaGetErrorString(error));
    }
}

cudaStream_t cuda_stream(const struct backend *backend, const struct op *op)
{
    const struct cuda *cuda = backend->state;
    return cuda->device.streams[op->lane];
}

void device_clear(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct buffer *out   = &buffers[CLEAR_OUT];
    size_t               bytes = (size_t)format_bytes(out->format, op->shape.elements.elements);
    CUDA_CHECK(cudaMemsetAsync(out->data, 0, bytes, cuda_stream(backend, op)));
}
