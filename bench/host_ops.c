// SPDX-License-Identifier: MIT
// Measures the host backend: GEMMs compared with one threaded BLAS call, attention, and row-wise ops in bytes/s.
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/clock.h"
#include "gswbench/op_table.h"
#include "gswbench/random.h"

enum { TRIALS_MIN = 3 };
static const double trial_seconds = 0.4;

struct bench {
    struct backend backend;
    struct op      op;
    struct buffer  buffers[OP_OPERANDS];
};

static struct buffer make_operand(struct backend *backend, enum format format, int64_t elements)
{
    struct buffer buffer = {backend_allocate(backend, format_bytes(format, elements)), elements, format};
    for (int64_t i = 0; i < elements; i++) {
        float value = random_normal(1, (uint64_t)i % 65536);
        if (format == FORMAT_F32) {
            ((float *)buffer.data)[i] = value;
        } else if (format == FORMAT_BF16) {
            ((bf16 *)buffer.data)[i] = bf16_from_float(value);
        } else {
            ((int32_t *)buffer.data)[i] = (int32_t)random_below(1, 0, (uint64_t)i, 1000);
        }
    }
    return buffer;
}

// Returns the minimum time of several runs.
static double measure(struct bench *bench)
{
    struct backend *backend = &bench->backend;
    backend_reserve_scratch(backend, backend->ops->scratch_bytes(backend, &bench->op));
    double best = 1e30, start = clock_seconds();
    for (int i = 0; i < TRIALS_MIN || clock_seconds() - start < trial_seconds; i++) {
        double before = clock_seconds();
        backend->ops->run[bench->op.kind](backend, &bench->op, bench->buffers);
        double seconds = clock_seconds() - before;
        best           = seconds < best ? seconds : best;
    }
    return best;
}

static void release_operands(struct bench *bench)
{
    for (int i = 0; i < OP_OPERANDS; i++) {
        if (bench->buffers[i].data != NULL) {
            struct buffer *buffer = &bench->buffers[i];
            backend_release(&bench->backend, buffer->data, format_bytes(buffer->format, buffer->elements));
        }
    }
    memset(bench->buffers, 0, sizeof(bench->buffers));
}

static double measure_blas(const struct gemm_shape *shape, int threads)
{
    float *a = calloc((size_t)(shape->m * shape->k), sizeof(float));
    float *b = calloc((size_t)(shape->k * shape->n), sizeof(float));
    float *c = calloc((size_t)(shape->m * shape->n), sizeof(float));
    for (int64_t i = 0; i < shape->m * shape->k; i++) {
        a[i] = random_normal(1, (uint64_t)i % 65536);
    }
    for (int64_t i = 0; i < shape->k * shape->n; i++) {
        b[i] = random_normal(2, (uint64_t)i % 65536);
    }
    openblas_set_num_threads(threads);
    double best = 1e30, start = clock_seconds();
    for (int i = 0; i < TRIALS_MIN || clock_seconds() - start < trial_seconds; i++) {
        double before = clock_seconds();
        cblas_sgemm(CblasRowMajor, shape->transpose_a ? CblasTrans : CblasNoTrans,
                    shape->transpose_b ? CblasTrans : CblasNoTrans, (int)shape->m, (int)shape->n, (int)shape->k, 1.0f,
                    a, (int)(shape->transpose_a ? shape->m : shape->k), b,
                    (int)(shape->transpose_b ? shape->k : shape->n), 0.0f, c, (int)shape->n);
        double seconds = clock_seconds() - before;
        best           = seconds < best ? seconds : best;
    }
    openblas_set_num_threads(1);
    free(a);
    free(b);
    free(c);
    return best;
}

static void bench_gemm(struct bench *bench, struct gemm_shape shape, int threads)
{
    double rates[3];
    bench->op = (struct op){.kind = OP_GEMM, .shape.gemm = shape};
    for (int i = 0; i < 2; i++) {
        enum format format     = i == 0 ? FORMAT_F32 : FORMAT_BF16;
        bench->buffers[GEMM_A] = make_operand(&bench->backend, format, shape.m * shape.k);
        bench->buffers[GEMM_B] = make_operand(&bench->backend, format, shape.k * shape.n);
        bench->buffers[GEMM_C] = make_operand(&bench->backend, format, shape.m * shape.n);
        rates[i]               = op_flops(&bench->op) / measure(bench) / 1e9;
        release_operands(bench);
    }
    rates[2] = op_flops(&bench->op) / measure_blas(&shape, threads) / 1e9;
    printf("gemm %5lld x %5lld x %5lld %c%c  f32 %7.1f  bf16 %7.1f  BLAS %7.1f GFLOP/s\n", (long long)shape.m,
           (long long)shape.n, (long long)shape.k, shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N',
           rates[0], rates[1], rates[2]);
}

static void bench_attention(struct bench *bench, struct attention_shape shape, enum format format)
{
    int64_t tokens = shape.batch * shape.sequence, queries = tokens * shape.heads * shape.head_dim;
    int64_t pairs = tokens * 2 * shape.kv_heads * shape.head_dim;
    double  rates[2];
    for (int backward = 0; backward < 2; backward++) {
        const int64_t forward_sizes[OP_OPERANDS]  = {queries, pairs, queries};
        const int64_t backward_sizes[OP_OPERANDS] = {queries, queries, pairs, queries, 0, queries, pairs};
        int           statistics                  = backward ? ATTENTION_GRADIENT_STATISTICS : ATTENTION_STATISTICS;
        bench->op =
            (struct op){.kind = backward ? OP_ATTENTION_BACKWARD : OP_ATTENTION_FORWARD, .shape.attention = shape};
        for (int i = 0; i < OP_OPERANDS; i++) {
            int64_t size = backward ? backward_sizes[i] : forward_sizes[i];
            if (size > 0) {
                bench->buffers[i] = make_operand(&bench->backend, format, size);
            }
        }
        bench->buffers[statistics] = make_operand(&bench->backend, FORMAT_F32, tokens * shape.heads);
        rates[backward]            = op_flops(&bench->op) / measure(bench) / 1e9;
        release_operands(bench);
    }
    printf("attention %s  %lld x %5lld  %lld heads (%lld) of %lld  forward %7.1f  backward %7.1f GFLOP/s\n",
           format_name(format), (long long)shape.batch, (long long)shape.sequence, (long long)shape.heads,
           (long long)shape.kv_heads, (long long)shape.head_dim, rates[0], rates[1]);
}

// An op and the number of elements of each operand. An operand with a negative number is always fp32 or integers.
struct row_bench {
    enum op_kind kind;
    int32_t      variant;
    int64_t      sizes[OP_OPERANDS];
};

static void bench_rows(struct bench *bench, const struct row_bench *row, struct rows_shape shape, enum format format)
{
    int64_t bytes   = 0;
    shape.variant   = row->variant;
    bench->op       = (struct op){.kind = (uint8_t)row->kind, .shape.rows = shape};
    bool is_flat    = op_table[row->kind].shape == elements_fields;
    bool has_tokens = row->kind == OP_EMBEDDING_FORWARD || row->kind == OP_EMBEDDING_BACKWARD;
    if (is_flat) {
        bench->op.shape.elements = (struct elements_shape){.elements = shape.rows * shape.columns};
    }
    for (int i = 0; i < OP_OPERANDS; i++) {
        int64_t size      = row->sizes[i];
        bool    is_tokens = (has_tokens && i == 0) || (row->kind == OP_CROSS_ENTROPY && i == CROSS_ENTROPY_TARGETS);
        if (size != 0) {
            enum format type  = is_tokens ? FORMAT_I32 : size < 0 ? FORMAT_F32 : format;
            bench->buffers[i] = make_operand(&bench->backend, type, llabs(size));
            bytes += format_bytes(type, llabs(size));
        }
    }
    if (row->kind == OP_ADAMW) {
        const float hyper[HYPER_COUNT] = {1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.1f, 0.05f};
        memcpy(bench->buffers[ADAMW_HYPER].data, hyper, sizeof(hyper));
        float *second = bench->buffers[ADAMW_SECOND].data;
        for (int64_t i = 0; i < shape.rows * shape.columns; i++) {
            second[i] = 1e-3f;
        }
    }
    double seconds = measure(bench);
    printf("%-20s %s  %6lld x %6lld  %7.2f ms  %6.1f GB/s\n", op_name(row->kind), format_name(format),
           (long long)shape.rows, (long long)shape.columns, 1e3 * seconds, (double)bytes / seconds / 1e9);
    release_operands(bench);
}

static void bench_all_rows(struct bench *bench, enum format format)
{
    enum { T = 2048, H = 2048, F = 5632, V = 32000 };
    struct rows_shape hidden = {
        .rows = T, .columns = H, .valid_columns = 1000, .total = 1000, .epsilon = 1e-5f, .multiplier = 1.0f};
    struct rows_shape ffn   = {.rows = T, .columns = F};
    struct rows_shape vocab = {
        .rows = T, .columns = V, .valid_columns = V, .total = V, .scale = 1.0f, .multiplier = 1.0f};
    // clang-format off
    static const struct row_bench of_hidden[] = {
        {OP_NORM_FORWARD, NORM_RMS, {T * H, T * H, H, 0, T * H, T * H, -2 * T}},
        {OP_NORM_FORWARD, NORM_LAYER, {T * H, T * H, H, H, T * H, T * H, -2 * T}},
        {OP_NORM_BACKWARD, NORM_RMS, {T * H, T * H, H, -2 * T, T * H, T * H, -H}},
        {OP_EMBEDDING_FORWARD, 0, {-T, 1000 * H, T * H}},
        {OP_EMBEDDING_BACKWARD, 0, {-T, T * H, -1000 * H}},
        {OP_CAST, 0, {T * H, -T * H}},
        {OP_SQUARE_SUM, 0, {-T * H, -1}},
        {OP_ADAMW, 0, {-HYPER_COUNT, -1, -T * H, -T * H, -T * H, -T * H, T * H}},
    };
    static const struct row_bench of_ffn[] = {
        {OP_ACTIVATION_FORWARD, ACTIVATION_SWIGLU, {2 * T * F, T * F}},
        {OP_ACTIVATION_BACKWARD, ACTIVATION_SWIGLU, {T * F, 2 * T * F, 2 * T * F}},
        {OP_ACTIVATION_FORWARD, ACTIVATION_GELU, {T * F, T * F}},
        {OP_ACTIVATION_BACKWARD, ACTIVATION_GELU, {T * F, T * F, T * F}},
    };
    static const struct row_bench of_vocab = {OP_CROSS_ENTROPY, 0, {T * V, -T, -T}};
    // clang-format on
    for (size_t i = 0; i < sizeof(of_hidden) / sizeof(of_hidden[0]); i++) {
        bench_rows(bench, &of_hidden[i], hidden, format);
    }
    for (size_t i = 0; i < sizeof(of_ffn) / sizeof(of_ffn[0]); i++) {
        bench_rows(bench, &of_ffn[i], ffn, format);
    }
    bench_rows(bench, &of_vocab, vocab, format);
}

int main(int argc, char **argv)
{
    struct bench bench   = {0};
    int          threads = argc > 1 ? atoi(argv[1]) : 2;
    status       opened  = backend_open(&bench.backend, "host", &(struct backend_setup){.threads = threads});
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        return opened.exit_code;
    }
    char text[256];
    bench.backend.ops->describe(&bench.backend, text, sizeof(text));
    puts(text);

    // clang-format off
    static const struct gemm_shape gemms[] = {
        {.m = 2048, .n = 2048, .k = 2048}, {.m = 2048, .n = 2048, .k = 2048, .transpose_b = true},
        {.m = 2048, .n = 2048, .k = 2048, .transpose_a = true}, {.m = 512, .n = 768, .k = 256, .transpose_b = true},
        {.m = 512, .n = 256, .k = 688, .transpose_b = true}, {.m = 1024, .n = 4096, .k = 1024, .transpose_b = true},
        {.m = 1024, .n = 1024, .k = 4096, .transpose_b = true}, {.m = 4096, .n = 1024, .k = 1024, .transpose_a = true},
        {.m = 1024, .n = 32000, .k = 512, .transpose_b = true}, {.m = 32000, .n = 512, .k = 1024, .transpose_a = true},
        {.m = 1024, .n = 512, .k = 32000},
    };
    static const struct attention_shape attentions[] = {
        {.batch = 4, .sequence = 256, .heads = 8, .kv_heads = 4, .head_dim = 64, .scale = 0.125f, .causal = true},
        {.batch = 1, .sequence = 2048, .heads = 8, .kv_heads = 2, .head_dim = 128, .scale = 0.088f, .causal = true},
        {.batch = 1, .sequence = 8192, .heads = 2, .kv_heads = 2, .head_dim = 128, .scale = 0.088f, .causal = true},
    };
    // clang-format on
    for (size_t i = 0; i < sizeof(gemms) / sizeof(gemms[0]); i++) {
        bench_gemm(&bench, gemms[i], threads);
    }
    for (size_t i = 0; i < 2 * sizeof(attentions) / sizeof(attentions[0]); i++) {
        bench_attention(&bench, attentions[i / 2], i % 2 == 0 ? FORMAT_F32 : FORMAT_BF16);
    }
    bench_all_rows(&bench, FORMAT_F32);
    bench_all_rows(&bench, FORMAT_BF16);
    backend_close(&bench.backend);
    return 0;
}
