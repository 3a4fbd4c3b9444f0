// SPDX-License-Identifier: MIT
// Shared by ops with built-in kernels: the device state and launch checks. This folder does not call CUDA directly, so
// any backend with streams can use it.
#pragma once

#include "gswbench/backend.h"
#include "gswbench/fatal.h"
#include "kernels/launch.h"
#include "kernels/quantize.h"

// First member of the state of such a backend.
struct device {
    void *streams[STREAM_COUNT];    // communication streams have high priority
    int   processors;               // number of SMs
    int   shared_bytes;             // maximum shared memory per block
    void *scratch;                  // size: the largest scratch_bytes; used on the compute stream
    // Ends the job if a call failed, or records the failure during capture.
    void (*check)(int error, const char *call, const char *file, int line);
};

static inline struct device *device_of(const struct backend *backend)
{
    return backend->state;
}

#define DEVICE_CHECK(call) device_of(backend)->check((call), #call, __FILE__, __LINE__)
// DEVICE_LAUNCH enqueues kernel_NAME on the op's stream. The other arguments are designated initialisers of struct
// NAME_args; DEVICE_LAUNCH_WITH takes the name of another struct.
#define DEVICE_LAUNCH(name, ...) DEVICE_LAUNCH_WITH(name, name##_args, __VA_ARGS__)
#define DEVICE_LAUNCH_WITH(name, arguments, ...)                                                                       \
    device_of(backend)->check(                                                                                         \
        kernel_##name(&(struct arguments){__VA_ARGS__}, (struct kernel_target[]){device_target(backend, op)}),         \
        "kernel_" #name, __FILE__, __LINE__)

// Address of an operand.
#define DATA(slot) buffers[slot].data

// Launch target: a stream, or the op's, and the device's size.
static inline struct kernel_target device_stream_target(const struct device *device, int stream)
{
    return (struct kernel_target){device->streams[stream], device->processors, device->shared_bytes};
}
static inline struct kernel_target device_target(const struct backend *backend, const struct op *op)
{
    return device_stream_target(device_of(backend), op->stream);
}

// Common element type of operands, whose slots are listed; kernels support no mixed types here.
#define DEVICE_TYPE(...)                                                                                               \
    device_type(op, buffers, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
static inline enum format device_type(const struct op *op, const struct buffer buffers[], const int slots[],
                                      size_t count)
{
    enum format first = buffers[slots[0]].format;
    for (size_t i = 1; i < count; i++) {
        if (buffers[slots[i]].format != first) {
            FATAL(EXIT_INTERNAL, "%s: operand %d is %s, operand %d %s", op_name((enum op_kind)op->kind), slots[0],
                  format_name(first), slots[i], format_name(buffers[slots[i]].format));
        }
    }
    return first;
}

// Arguments of the quantization fused to an op. in is the op's output and may be NULL.
struct quantize_args device_fused_copies(struct backend *backend, const struct op *op,
                                         const struct buffer buffers[OP_OPERANDS]);
// Where the op writes the amax of its output if the fused quantization needs it for the scale; otherwise NULL.
float *device_fused_magnitude(struct backend *backend, const struct op *op);

// The ops, named after their kinds. They enqueue on the op's stream and never allocate, synchronize or select kernels.
// device_gemm and device_clear use no built-in kernels; the backend implements them.
#define DEVICE_OP(kind, name) op_run device_##name;
OP_COMPUTE_KINDS(DEVICE_OP)

typedef int64_t device_scratch(const struct op *op, const struct kernel_target *target);
device_scratch  device_attention_backward_scratch, device_embedding_backward_scratch, device_norm_backward_scratch,
    device_rope_backward_scratch, device_route_forward_scratch, device_quantize_scratch, device_square_sum_scratch,
    device_column_sum_scratch, device_sink_backward_scratch, device_convolution_backward_scratch,
    device_scan_backward_scratch, device_gated_norm_backward_scratch;

// Fails with the reason if the built-in kernels do not support the op's attention on this device.
status device_attention_check(const struct device *device, const struct op *op);
