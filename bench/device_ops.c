// SPDX-License-Identifier: MIT
// Measures the throughput of single ops on a GPU: memory copy, GEMMs in BF16 and FP8, quantization to FP8, and
// attention for several sequence lengths.
#include <stdio.h>

#include "support/device_op.h"

static const double warm_up_seconds = 0.5;

enum { COPY_BYTES = (1 << 30) / DEVICE_SHRINKS };

// The parameters of a case. run() receives a pointer to base.
struct ops_case {
    struct device_case base;
    const char        *operands;
    int64_t            m, n, k;    // of a GEMM; rows and columns to quantize; tokens of attention
    char               transposes[3];
    enum scaling       scaling;
    double             forward, backward;    // published FLOP/s of attention, cuDNN 9.19 on H200
};

static void bench_copy(struct device *device, const struct device_case *one)
{
    double seconds = 2.0 * COPY_BYTES / device_copy_rate(device, COPY_BYTES, warm_up_seconds);
    device_report(device,
                  &(struct device_record){.bench         = "memory",
                                          .name          = one->name,
                                          .seconds       = seconds,
                                          .bound_seconds = device_bound(2.0 * COPY_BYTES, device->bounds.copy_bytes),
                                          .bytes         = 2.0 * COPY_BYTES});
}

// Times an op. flops is the rate that optimized code reaches, in FLOP/s; 0: unknown; negative: the op is bound by
// memory.
static void bench_op(struct device *device, struct device_op *bench, const char *name, const char *group, double flops)
{
    device_require(device_op_open(bench, device));
    double bytes = device_op_bytes(&bench->op, bench->buffers);
    device_report(device,
                  &(struct device_record){.bench         = group,
                                          .name          = name,
                                          .seconds       = device_op_seconds(bench, warm_up_seconds),
                                          .bound_seconds = flops >= 0 ? device_bound(op_flops(&bench->op), flops)
                                                                      : device_bound(bytes, device->bounds.copy_bytes),
                                          .flops         = op_flops(&bench->op),
                                          .bytes         = bytes});
    device_op_close(bench);
}

static void bench_gemm(struct device *device, const struct device_case *base)
{
    const struct ops_case *one   = (const struct ops_case *)base;    // base is its first member
    struct device_op       bench = {.op       = {.kind       = OP_GEMM,
                                                 .shape.gemm = {.m           = one->m / DEVICE_SHRINKS,
                                                                .n           = one->n / DEVICE_SHRINKS,
                                                                .k           = one->k / DEVICE_SHRINKS,
                                                                .transpose_a = one->transposes[0] == 't',
                                                                .transpose_b = one->transposes[1] == 't'}},
                                    .operands = "bbb"};
    bench_op(device, &bench, base->name, "gemm", device->bounds.gemm_flops);
}

// Times the forward, data gradient and weight gradient GEMMs of a linear [n, k] for m tokens.
static void bench_linear(struct device *device, const struct device_case *base)
{
    const struct ops_case *one = (const struct ops_case *)base;
    int64_t                m = one->m / DEVICE_SHRINKS, n = one->n / DEVICE_SHRINKS, k = one->k / DEVICE_SHRINKS;
    const struct {
        const char       *name, *operands;
        struct gemm_shape shape;
        bool              sums_fast;
    } passes[] = {{"forward", "44bff", {.m = m, .n = n, .k = k}, true},
                  {"data gradient", "54bff", {.m = m, .n = k, .k = n}, false},
                  {"weight gradient", "54fff", {.m = n, .n = k, .k = m}, false}};
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
        struct device_op bench = {
            .op       = {.kind = OP_GEMM, .sums_fast = passes[i].sums_fast, .shape.gemm = passes[i].shape},
            .operands = passes[i].operands};
        bench.op.shape.gemm.transpose_b = true;
        char name[64];
        snprintf(name, sizeof(name), "%s, %s", base->name, passes[i].name);
        bench_op(device, &bench, name, "fp8 gemm", device_gemm_flops(&device->bounds, &bench.op, FORMAT_E4M3));
    }
}

// Times the quantization of a matrix into an FP8 copy and a transposed FP8 copy.
static void bench_quantize(struct device *device, const struct device_case *base)
{
    const struct ops_case *one   = (const struct ops_case *)base;
    struct device_op       bench = {.op       = {.kind           = OP_QUANTIZE,
                                                 .shape.quantize = {.rows    = one->m / DEVICE_SHRINKS,
                                                                    .columns = one->n / DEVICE_SHRINKS,
                                                                    .scaling = (int32_t)one->scaling}},
                                    .operands = one->operands};
    bench_op(device, &bench, base->name, "quantize", -1);
}

// Times causal attention with 64 query heads and 8 KV heads, all of dimension 128.
static void bench_attention(struct device *device, const struct device_case *base)
{
    const struct ops_case *one = (const struct ops_case *)base;
    for (int backward = 0; backward < 2; backward++) {
        enum { HEADS_SHRINK = DEVICE_SHRINKS > 1 ? 8 : 1, HEAD_SHRINKS = DEVICE_SHRINKS > 1 ? 4 : 1 };
        struct attention_shape shape = {.batch    = 1,
                                        .sequence = one->m / DEVICE_SHRINKS,
                                        .heads    = 64 / HEADS_SHRINK,
                                        .kv_heads = 8 / HEADS_SHRINK,
                                        .head_dim = 128 / HEAD_SHRINKS,
                                        .scale    = 0.088388f,
                                        .causal   = true};
        struct device_op       bench = {
                  .op = {.kind = backward ? OP_ATTENTION_BACKWARD : OP_ATTENTION_FORWARD, .shape.attention = shape},
                  .operands = backward ? "bbbbfbb" : "bbbf"};
        char name[64];
        snprintf(name, sizeof(name), "%s, %s", base->name, backward ? "backward" : "forward");
        double published = backward ? one->backward : one->forward;
        bench_op(device, &bench, name, "attention", device->is_h200 ? published : 0);
    }
}

// clang-format off
static const struct ops_case cases[] = {
    {{"copy",                       bench_copy},      .m = 0},
    {{"gemm/8192x8192x8192-nt",     bench_gemm},      .m = 8192, .n = 8192, .k = 8192, .transposes = "nt"},
    {{"fp8/70B-fc1",                bench_linear},    .m = 8192, .n = 57344, .k = 8192},
    {{"attention/8192",             bench_attention}, .m = 8192, .forward = 644e12, .backward = 541e12},
    {{"gemm/8192x8192x8192-nn",     bench_gemm},      .m = 8192, .n = 8192, .k = 8192, .transposes = "nn"},
    {{"gemm/8192x8192x8192-tn",     bench_gemm},      .m = 8192, .n = 8192, .k = 8192, .transposes = "tn"},
    {{"gemm/4096x4096x4096-nt",     bench_gemm},      .m = 4096, .n = 4096, .k = 4096, .transposes = "nt"},
    {{"gemm/8192x1024x8192-nt",     bench_gemm},      .m = 8192, .n = 1024, .k = 8192, .transposes = "nt"},
    {{"gemm/8192x8192x1024-nt",     bench_gemm},      .m = 8192, .n = 8192, .k = 1024, .transposes = "nt"},
    {{"gemm/2048x7168x2048-nt",     bench_gemm},      .m = 2048, .n = 7168, .k = 2048, .transposes = "nt"},
    {{"gemm/8192x128256x4096-nt",   bench_gemm},      .m = 8192, .n = 128256, .k = 4096, .transposes = "nt"},
    {{"fp8/8B-qkv",                 bench_linear},    .m = 8192, .n = 6144, .k = 4096},
    {{"fp8/8B-out",                 bench_linear},    .m = 8192, .n = 4096, .k = 4096},
    {{"fp8/8B-fc1",                 bench_linear},    .m = 8192, .n = 28672, .k = 4096},
    {{"fp8/8B-fc2",                 bench_linear},    .m = 8192, .n = 4096, .k = 14336},
    {{"fp8/70B-qkv",                bench_linear},    .m = 8192, .n = 10240, .k = 8192},
    {{"fp8/70B-out",                bench_linear},    .m = 8192, .n = 8192, .k = 8192},
    {{"fp8/70B-fc2",                bench_linear},    .m = 8192, .n = 8192, .k = 28672},
    {{"quantize/8192x4096-current", bench_quantize},  "b44f",    8192, 4096, .scaling = SCALING_WHOLE},
    {{"quantize/8192x4096-given",   bench_quantize},  "b44--ff", 8192, 4096, .scaling = SCALING_WHOLE},
    {{"quantize/8192x4096-runs",    bench_quantize},  "b44ff",   8192, 4096, .scaling = SCALING_1X128},
    {{"quantize/8192x4096-squares", bench_quantize},  "b44ff",   8192, 4096, .scaling = SCALING_128X128},
    {{"quantize/8192x28672-current", bench_quantize}, "b44f",    8192, 28672, .scaling = SCALING_WHOLE},
    {{"quantize/8192x28672-given",  bench_quantize},  "b44--ff", 8192, 28672, .scaling = SCALING_WHOLE},
    {{"attention/2048",             bench_attention}, .m = 2048, .forward = 484e12, .backward = 370e12},
    {{"attention/4096",             bench_attention}, .m = 4096, .forward = 591e12, .backward = 474e12},
    {{"attention/16384",            bench_attention}, .m = 16384, .forward = 673e12, .backward = 579e12},
    {{"attention/32768",            bench_attention}, .m = 32768, .forward = 688e12, .backward = 581e12},
};
// clang-format on

int main(int argc, char **argv)
{
    return device_main(argc, argv, cases, sizeof(cases[0]), (int)(sizeof(cases) / sizeof(cases[0])));
}
