// SPDX-License-Identifier: MIT
// Error checks, capture state and small ops of the cuda backend.
#include "gswbench/fatal.h"
#include "internal.h"

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
    return cuda->device.streams[op->lane];
}

void device_clear(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct buffer *out   = &buffers[CLEAR_OUT];
    size_t               bytes = (size_t)format_bytes(out->format, op->shape.elements.elements);
    CUDA_CHECK(cudaMemsetAsync(out->data, 0, bytes, cuda_stream(backend, op)));
}
