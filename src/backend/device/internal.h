// SPDX-License-Identifier: MIT
// What ops share whose kernels are our own: the device as they see it, and the check of every launch. Nothing here
// knows whose device it is.
#ifndef GSWBENCH_DEVICE_INTERNAL_H
#define GSWBENCH_DEVICE_INTERNAL_H

#include "gswbench/backend.h"
#include "kernels/launch.h"
#include "kernels/quantize.h"

// The first member of such a backend's state.
struct device {
    void *streams[LANE_COUNT];    // transfers' at high priority
    int   processors;             // multiprocessors
    int   shared_bytes;           // of shared memory that a block may ask for
    void *scratch;                // as large as the largest scratch_bytes; of the compute lane
    // Ends the job when a call failed, or keeps why a step is not captured.
    void (*check)(int error, const char *call, const char *file, int line);
};

static inline struct device *device_of(const struct backend *backend)
{
    return backend->state;
}

#define DEVICE_CHECK(call) device_of(backend)->check((call), #call, __FILE__, __LINE__)

// The stream of the op's lane and the device's size, as launch functions take them.
struct kernel_target device_target(const struct backend *backend, const struct op *op);

// The element type that two of the op's operands share; kernels have no other combination.
enum format device_type(const struct op *op, const struct buffer buffers[], int slot, int other);

// What makes the copies that are fused to an op; in: its output, may be absent.
struct quantize_args device_fused_copies(struct backend *backend, const struct op *op,
                                         const struct buffer buffers[OP_OPERANDS]);
// Where the op that makes a matrix leaves its largest magnitude, for copies whose scale follows from it; else NULL.
float *device_fused_magnitude(struct backend *backend, const struct op *op);

// The ops, each a function by its kind's name, which enqueues on the stream of its lane; nothing allocates, waits or
// decides. device_gemm and device_clear, which need no kernels of our own, are the backend's.
#define DEVICE_OP(kind, name) op_run device_##name;
OP_COMPUTE_KINDS(DEVICE_OP)

// Bytes of scratch that an op needs.
typedef int64_t device_scratch(const struct op *op, const struct kernel_target *target);
device_scratch  device_attention_backward_scratch, device_embedding_backward_scratch, device_norm_backward_scratch,
    device_rope_backward_scratch, device_route_forward_scratch, device_quantize_scratch, device_square_sum_scratch,
    device_column_sum_scratch, device_sink_backward_scratch;

// Whether kernels of our own compute the attention of the op on this device; else why not.
status device_attention_check(const struct device *device, const struct op *op);

#endif
