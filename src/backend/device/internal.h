// SPDX-License-Identifier: MIT
// Declares the state of the device and the launch checks that ops with built-in kernels use. This folder does not call
// CUDA directly, so that another backend with streams can use it.
#pragma once

#include "gswbench/backend.h"
#include "gswbench/fatal.h"
#include "kernels/launch.h"
#include "kernels/quantize.h"

// State of a device. It is the first member of the state of every backend that uses this folder.
struct device {
    void *streams[STREAM_COUNT];    // communication streams have high priority
    int   processors;               // number of SMs
    int   shared_bytes;             // maximum shared memory per block
    void *scratch;                  // for ops on the compute stream; large enough for each op
    // Ends the job if a call failed. During the capture of a graph it records the failure instead.
    void (*check)(int error, const char *call, const char *file, int line);
};

static inline struct device *device_of(const struct backend *backend)
{
    return backend->state;
}

#define DEVICE_CHECK(call) device_of(backend)->check((call), #call, __FILE__, __LINE__)
// DEVICE_LAUNCH(NAME, ...) enqueues kernel_NAME on the op's stream. The other arguments initialise struct NAME_args.
// DEVICE_LAUNCH_WITH takes the name of another struct.
#define DEVICE_LAUNCH(name, ...) DEVICE_LAUNCH_WITH(name, name##_args, __VA_ARGS__)
#define DEVICE_LAUNCH_WITH(name, arguments, ...)                                                                       \
    device_of(backend)->check(                                                                                         \
        kernel_##name(&(struct arguments){__VA_ARGS__}, (struct kernel_target[]){device_target(backend, op)}),         \
        "kernel_" #name, __FILE__, __LINE__)

// Address of an operand.
#define DATA(slot) buffers[slot].data

// Returns the target of a kernel launch: a stream (device_target: the op's stream) and the properties of the device.
static inline struct kernel_target device_stream_target(const struct device *device, int stream)
{
    return (struct kernel_target){device->streams[stream], device->processors, device->shared_bytes};
}
static inline struct kernel_target device_target(const struct backend *backend, const struct op *op)
{
    return device_stream_target(device_of(backend), op->stream);
}

// Element type that the listed operands have in common. Ends the job if they differ, because the kernel supports no
// mixed types.
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

// Arguments of the FP8 quantization that is fused to an op. Their field `in` is the op's output, or NULL if the op does
// not store its output.
struct quantize_args device_fused_copies(struct backend *backend, const struct op *op,
                                         const struct buffer buffers[OP_OPERANDS]);
// Returns the address where the op writes the amax of its output. NULL: the fused quantization does not need it to
// compute the scale.
float *device_fused_magnitude(struct backend *backend, const struct op *op);

// Functions that enqueue an op of each kind on the op's stream. They never allocate, synchronize or select kernels.
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
