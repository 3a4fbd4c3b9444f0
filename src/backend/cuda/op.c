// SPDX-License-Identifier: MIT
// What the cuda backend's ops share.
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
    return cuda->streams[op->lane];
}

struct kernel_target cuda_target(const struct backend *backend, const struct op *op)
{
    const struct cuda *cuda = backend->state;
    return (struct kernel_target){cuda_stream(backend, op), cuda->processors, cuda->shared_bytes};
}

enum dtype cuda_type(const struct op *op, const struct buffer buffers[], int slot, int other)
{
    if (buffers[slot].dtype != buffers[other].dtype) {
        FATAL(EXIT_INTERNAL, "%s: operand %d is %s, operand %d %s", op_name((enum op_kind)op->kind), slot,
              dtype_name(buffers[slot].dtype), other, dtype_name(buffers[other].dtype));
    }
    return buffers[slot].dtype;
}
