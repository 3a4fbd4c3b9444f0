// SPDX-License-Identifier: MIT
// What a device reaches in single ops: a copy of its memory, GEMMs in BF16 and in FP8, making FP8, and
// attention over growing sequences.
#include <stdio.h>
#include <string.h>

#include "support/device.h"

enum { COPY_BYTES = 1 << 30 };

struct bench {
    struct device         *device;
    struct op              op;
    const char            *operands;    // a letter a slot: f fp32, b bf16, 4 E4M3, 5 E5M2, - absent
    struct buffer          buffers[OP_OPERANDS];
    const struct prepared *prepared;
};

static void run_op(void *argument)
{
    struct bench *bench = argument;
    backend_run(&bench->device->backend, bench->prepared, &bench->op, bench->buffers);
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
            backend_release(&bench->device->backend, buffer->data, format_bytes(buffer->format, buffer->elements));
        }
        *buffer = (struct buffer){.data = NULL};
    }
}

static void bench_copy(struct device *device)
{
    struct bench bench = {.device = device};
    for (int i = 0; i < 2; i++) {
        bench.buffers[i] = device_operand(device, FORMAT_BF16, COPY_BYTES / 2);
    }
    double seconds = device_median_seconds(device, run_copy, &bench, 0.5);
    device_report(device, &(struct device_record){.bench         = "memory",
                                                  .name          = "copy of 1 GiB",
                                                  .seconds       = seconds,
                                                  .bound_seconds = 2.0 * COPY_BYTES / device_memory_bytes,
                                                  .bytes         = 2.0 * COPY_BYTES});
    release(&bench);
}

static void make_operands(struct device *device, struct bench *bench)
{
    static const enum format types[] = {
        ['f'] = FORMAT_F32, ['b'] = FORMAT_BF16, ['4'] = FORMAT_E4M3, ['5'] = FORMAT_E5M2};
    struct op *op     = &bench->op;
    op->operand_count = (uint8_t)strlen(bench->operands);
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        bool is_there     = slot < op->operand_count && bench->operands[slot] != '-';
        op->operand[slot] = is_there ? slot : -1;
        if (is_there) {
            op->access[slot] = (uint8_t)op_operand_access(op, slot);
            bench->buffers[slot] =
                device_operand(device, types[(unsigned char)bench->operands[slot]], op_operand_elements(op, slot));
        }
    }
}

// flops: a second that well-written code reaches; 0: memory is the bound.
static void bench_op(struct device *device, struct bench *bench, const char *name, const char *group, double flops)
{
    struct backend *backend = &device->backend;
    bench->device           = device;
    make_operands(device, bench);
    device_require(backend_prepare(backend, &bench->op, bench->buffers, &bench->prepared));
    backend_reserve_scratch(backend, backend->ops->scratch_bytes(backend, &bench->op));
    double bytes = device_op_bytes(&bench->op, bench->buffers);
    device_report(device, &(struct device_record){.bench         = group,
                                                  .name          = name,
                                                  .seconds       = device_median_seconds(device, run_op, bench, 0.5),
                                                  .bound_seconds = flops > 0 ? op_flops(&bench->op) / flops
                                                                             : bytes / device_memory_bytes,
                                                  .flops         = op_flops(&bench->op),
                                                  .bytes         = bytes});
    release(bench);
}

static void bench_gemm(struct device *device, struct gemm_shape shape)
{
    struct bench bench = {.op = {.kind = OP_GEMM, .shape.gemm = shape}, .operands = "bbb"};
    char         name[64];
    snprintf(name, sizeof(name), "gemm %lld x %lld x %lld %c%c", (long long)shape.m, (long long)shape.n,
             (long long)shape.k, shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N');
    bench_op(device, &bench, name, "gemm", device_bf16_flops);
}

// The three GEMMs of a linear [n, k] over so many tokens.
struct linear {
    const char *name;
    int64_t     tokens, n, k;
};

static void bench_linear(struct device *device, const struct linear *linear)
{
    int64_t m = linear->tokens, n = linear->n, k = linear->k;
    const struct {
        const char       *name, *operands;
        struct gemm_shape shape;
        bool              sums_fast;
    } passes[] = {{"forward", "44bff", {.m = m, .n = n, .k = k}, true},
                  {"data gradient", "54bff", {.m = m, .n = k, .k = n}, false},
                  {"weight gradient", "54fff", {.m = n, .n = k, .k = m}, false}};
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        struct bench bench = {.op = {.kind = OP_GEMM, .sums_fast = passes[i].sums_fast, .shape.gemm = passes[i].shape},
                              .operands = passes[i].operands};
        bench.op.shape.gemm.transpose_b = true;
        char name[64];
        snprintf(name, sizeof(name), "%s, %s", linear->name, passes[i].name);
        bench_op(device, &bench, name, "fp8 gemm", device_gemm_flops(&bench.op, FORMAT_E4M3));
    }
}

// Both copies of a matrix in FP8.
static void bench_quantize(struct device *device, int64_t rows, int64_t columns)
{
    const struct {
        const char  *name, *operands;
        enum scaling scaling;
    } recipes[] = {{"by current values", "b44f", SCALING_WHOLE},
                   {"by a given scale", "b44--ff", SCALING_WHOLE},
                   {"by runs", "b44ff", SCALING_RUNS},
                   {"by squares", "b44ff", SCALING_SQUARES}};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        struct bench bench = {
            .op       = {.kind           = OP_QUANTIZE,
                         .shape.quantize = {.rows = rows, .columns = columns, .scaling = (int32_t)recipes[i].scaling}},
            .operands = recipes[i].operands};
        char name[64];
        snprintf(name, sizeof(name), "quantize %lld x %lld %s", (long long)rows, (long long)columns, recipes[i].name);
        bench_op(device, &bench, name, "quantize", 0);
    }
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
                      .op = {.kind = backward ? OP_ATTENTION_BACKWARD : OP_ATTENTION_FORWARD, .shape.attention = shape},
                      .operands = backward ? "bbbbfbb" : "bbbf"};
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
    static const struct linear linears[] = {
        {"8B qkv", 8192, 6144, 4096},    {"8B out", 8192, 4096, 4096},
        {"8B fc1", 8192, 28672, 4096},   {"8B fc2", 8192, 4096, 14336},
        {"70B qkv", 8192, 10240, 8192},  {"70B out", 8192, 8192, 8192},
        {"70B fc1", 8192, 57344, 8192},  {"70B fc2", 8192, 8192, 28672},
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
    for (size_t i = 0; i < sizeof(linears) / sizeof(linears[0]) && device_has_fp8(&device); i++) {
        bench_linear(&device, &linears[i]);
    }
    bench_quantize(&device, 8192, 4096);
    bench_quantize(&device, 8192, 28672);
    for (size_t i = 0;
         i < sizeof(anchors) / sizeof(anchors[0]) && device.backend.ops->run[OP_ATTENTION_FORWARD] != NULL; i++) {
        bench_attention(&device, &anchors[i]);
    }
    device_close(&device);
    return EXIT_VALID;
}
