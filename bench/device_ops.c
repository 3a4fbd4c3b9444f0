// SPDX-License-Identifier: MIT
// What a device reaches in single ops: a copy of its memory, matrix products, and attention over growing sequences.
#include "device.h"

enum { COPY_BYTES = 1 << 30 };

struct bench {
    struct device *device;
    struct op      op;
    struct buffer  buffers[OP_OPERANDS];
};

static void run_op(void *argument)
{
    struct bench *bench = argument;
    bench->device->backend.ops->run[bench->op.kind](&bench->device->backend, &bench->op, bench->buffers);
}

static void run_copy(void *argument)
{
    struct bench *bench = argument;
    bench->device->streams->copy(&bench->device->backend, LANE_COMPUTE, bench->buffers[1].data, bench->buffers[0].data,
                                 COPY_BYTES);
}

static void release(struct bench *bench)
{
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        struct buffer *buffer = &bench->buffers[slot];
        if (buffer->data != NULL) {
            backend_release(&bench->device->backend, buffer->data, buffer->elements * dtype_bytes(buffer->dtype));
        }
        *buffer = (struct buffer){.data = NULL};
    }
}

static void bench_copy(struct device *device)
{
    struct bench bench = {.device = device};
    for (int i = 0; i < 2; i++) {
        bench.buffers[i] = device_operand(device, DTYPE_BF16, COPY_BYTES / 2);
    }
    double seconds = device_median_seconds(device, run_copy, &bench, 0.5);
    device_report(device, &(struct device_record){.bench         = "memory",
                                                  .name          = "copy of 1 GiB",
                                                  .seconds       = seconds,
                                                  .bound_seconds = 2.0 * COPY_BYTES / device_memory_bytes,
                                                  .bytes         = 2.0 * COPY_BYTES});
    release(&bench);
}

// Operands as the op's shape wants them: bf16, statistics fp32. flops: a second that well-written code reaches.
static void bench_op(struct device *device, struct bench *bench, const char *name, const char *group, double flops)
{
    struct backend *backend = &device->backend;
    bench->device           = device;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bench->op.access[slot] = (uint8_t)op_operand_access(&bench->op, slot);
        if (bench->op.access[slot] != 0) {
            bool is_statistics = (bench->op.kind == OP_ATTENTION_FORWARD && slot == ATTENTION_STATISTICS) ||
                                 (bench->op.kind == OP_ATTENTION_BACKWARD && slot == ATTENTION_GRADIENT_STATISTICS);
            bench->buffers[slot] =
                device_operand(device, is_statistics ? DTYPE_F32 : DTYPE_BF16, op_operand_elements(&bench->op, slot));
            bench->op.operand_count++;
        }
    }
    device_require(backend->ops->prepare(backend, &bench->op, bench->buffers));
    backend_reserve_scratch(backend, backend->ops->scratch_bytes(backend, &bench->op));
    struct device_record record = {.bench         = group,
                                   .name          = name,
                                   .seconds       = device_median_seconds(device, run_op, bench, 0.5),
                                   .bound_seconds = op_flops(&bench->op) / flops,
                                   .flops         = op_flops(&bench->op),
                                   .bytes         = device_op_bytes(&bench->op, bench->buffers)};
    device_report(device, &record);
    release(bench);
}

static void bench_gemm(struct device *device, struct gemm_shape shape)
{
    struct bench bench = {.op = {.kind = OP_GEMM, .shape.gemm = shape}};
    char         name[64];
    snprintf(name, sizeof(name), "gemm %lld x %lld x %lld %c%c", (long long)shape.m, (long long)shape.n,
             (long long)shape.k, shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N');
    bench_op(device, &bench, name, "gemm", device_product_flops);
}

// Of cuDNN 9.19 on an H200, as published: causal, 64 heads (8 KV) of 128.
struct attention_anchor {
    int64_t sequence;
    double  forward, backward;
};

static void bench_attention(struct device *device, const struct attention_anchor *anchor)
{
    for (int backward = 0; backward < 2; backward++) {
        struct attention_shape shape = {.batch    = 1,
                                        .sequence = anchor->sequence,
                                        .heads    = 64,
                                        .kv_heads = 8,
                                        .head_dim = 128,
                                        .scale    = 0.088388f,
                                        .causal   = true};
        struct bench           bench = {
                      .op = {.kind = backward ? OP_ATTENTION_BACKWARD : OP_ATTENTION_FORWARD, .shape.attention = shape}};
        char name[64];
        snprintf(name, sizeof(name), "attention %s, %lld tokens", backward ? "backward" : "forward",
                 (long long)anchor->sequence);
        bench_op(device, &bench, name, "attention", backward ? anchor->backward : anchor->forward);
    }
}

int main(int argc, char **argv)
{
    // clang-format off
    static const struct gemm_shape gemms[] = {
        {.m = 8192, .n = 8192, .k = 8192}, {.m = 8192, .n = 8192, .k = 8192, .transpose_b = true},
        {.m = 8192, .n = 8192, .k = 8192, .transpose_a = true}, {.m = 4096, .n = 4096, .k = 4096, .transpose_b = true},
        {.m = 8192, .n = 1024, .k = 8192, .transpose_b = true}, {.m = 8192, .n = 8192, .k = 1024, .transpose_b = true},
        {.m = 2048, .n = 7168, .k = 2048, .transpose_b = true}, {.m = 8192, .n = 128256, .k = 4096, .transpose_b = true},
    };
    static const struct attention_anchor anchors[] = {
        {2048, 484e12, 370e12}, {4096, 591e12, 474e12}, {8192, 644e12, 541e12}, {16384, 673e12, 579e12},
        {32768, 688e12, 581e12},
    };
    // clang-format on
    struct device device;
    device_open(&device, argc, argv);
    bench_copy(&device);
    for (size_t i = 0; i < sizeof(gemms) / sizeof(gemms[0]); i++) {
        bench_gemm(&device, gemms[i]);
    }
    for (size_t i = 0;
         i < sizeof(anchors) / sizeof(anchors[0]) && device.backend.ops->run[OP_ATTENTION_FORWARD] != NULL; i++) {
        bench_attention(&device, &anchors[i]);
    }
    device_close(&device);
    return EXIT_VALID;
}
