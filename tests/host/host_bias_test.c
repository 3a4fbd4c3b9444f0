// SPDX-License-Identifier: MIT
// GEMM biases, their gradient, and attention sinks, against plain sums and softmaxes in double.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "reference.h"

static void expect_gemm(struct gemm_shape shape, enum format in, enum format out, bool accumulates)
{
    struct op     op                   = {.kind = OP_GEMM, .accumulates = accumulates, .shape.gemm = shape};
    struct buffer buffers[OP_OPERANDS] = {
        [GEMM_A]    = make_random(in, shape.m * shape.k, 1, 1),
        [GEMM_B]    = make_random(in, shape.k * shape.n, 2, 1),
        [GEMM_C]    = make_random(out, shape.m * shape.n, 3, 1),
        [GEMM_BIAS] = make_random(in, shape.n, 4, 5),
    };
    double *a = values_of(&buffers[GEMM_A]), *b = values_of(&buffers[GEMM_B]), *before = values_of(&buffers[GEMM_C]);
    double *c = values_of(&buffers[GEMM_C]), *bias = values_of(&buffers[GEMM_BIAS]);
    reference_gemm(&shape, a, b, c);
    for (int64_t i = 0; i < shape.m * shape.n; i++) {
        c[i] += bias[i % shape.n] + (accumulates ? before[i] : 0);
    }

    run_op(&op, buffers, THREADS);

    expect_close(&buffers[GEMM_C], c, tolerance(out), "gemm with a bias");
}

Test(host_bias, adds_a_bias_to_each_row_of_a_product)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 3, 7}, {33, 31, 65}, {600, 19, 530}, {40, 1100, 70}};
    for (int i = 0; i < 5; i++) {
        for (int bits = 0; bits < 8; bits++) {
            struct gemm_shape shape = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2], .transpose_b = true};
            expect_gemm(shape, types[bits & 1], types[(bits & 2) != 0], (bits & 4) != 0);
        }
    }
}

Test(host_bias, sums_columns)
{
    static const int64_t sizes[][2] = {{1, 1}, {7, 3}, {300, 65}, {64, 1030}};
    for (int i = 0; i < 16; i++) {
        int64_t   rows = sizes[i / 4][0], columns = sizes[i / 4][1];
        bool      adds = (i & 2) != 0;
        struct op op   = {.kind = OP_COLUMN_SUM, .accumulates = adds, .shape.rows = {.rows = rows, .columns = columns}};
        struct buffer buffers[OP_OPERANDS] = {
            [COLUMN_SUM_IN]  = make_random(types[i & 1], rows * columns, 1, 1),
            [COLUMN_SUM_OUT] = adds ? make_random(types[i & 1], columns, 2, 1) : make_output(types[i & 1], columns),
        };
        double *in = values_of(&buffers[COLUMN_SUM_IN]), *sums = values_of(&buffers[COLUMN_SUM_OUT]);
        for (int64_t column = 0; column < columns; column++) {
            sums[column] = adds ? sums[column] : 0;
            for (int64_t row = 0; row < rows; row++) {
                sums[column] += in[row * columns + column];
            }
        }

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[COLUMN_SUM_OUT], sums, tolerance(types[i & 1]), "column sums");
    }
}

struct sink_context {
    struct attention_shape shape;
    double                *query, *pairs, *sinks;
};

// Attention whose softmax includes the sink's score.
static void attention_with(const struct sink_context *context, const double *query, const double *pairs,
                           const double *sinks, double *out, double *statistics)
{
    const struct attention_shape *shape = &context->shape;
    int64_t                       count = shape->batch * shape->heads * shape->sequence;
    double                       *sums  = make_space(sizeof(*sums) * (size_t)count);
    reference_attention(shape, query, pairs, out, sums);
    for (int64_t i = 0; i < count; i++) {
        int64_t position = i % shape->sequence, head = i / shape->sequence % shape->heads;
        int64_t token = i / shape->sequence / shape->heads * shape->sequence + position;
        double  keys = exp(sums[i]), all = keys + exp(sinks[head]);
        for (int64_t d = 0; d < shape->head_dim; d++) {
            out[(token * shape->heads + head) * shape->head_dim + d] *= keys / all;
        }
        sums[i] = log(all);
    }
    if (statistics != NULL) {
        memcpy(statistics, sums, sizeof(*sums) * (size_t)count);
    }
}

static void of_query(const void *context, const double *in, double *out)
{
    const struct sink_context *with = context;
    attention_with(with, in, with->pairs, with->sinks, out, NULL);
}
static void of_pairs(const void *context, const double *in, double *out)
{
    const struct sink_context *with = context;
    attention_with(with, with->query, in, with->sinks, out, NULL);
}
static void of_sinks(const void *context, const double *in, double *out)
{
    const struct sink_context *with = context;
    attention_with(with, with->query, with->pairs, in, out, NULL);
}

// Forward: attention, then the sink op. Backward: the unchanged attention backward op, and the sink gradient.
static void expect_sinks(const struct attention_shape *shape, enum format format, bool adds)
{
    int64_t tokens  = shape->batch * shape->sequence;
    int64_t queries = tokens * shape->heads * shape->head_dim, pairs = tokens * 2 * shape->kv_heads * shape->head_dim;
    struct buffer       in[OP_OPERANDS]    = {[ATTENTION_QUERY]      = make_random(format, queries, 1, 1),
                                              [ATTENTION_KEY_VALUE]  = make_random(format, pairs, 2, 1),
                                              [ATTENTION_OUT]        = make_output(format, queries),
                                              [ATTENTION_STATISTICS] = make_output(FORMAT_F32, tokens * shape->heads)};
    struct buffer       sinks[OP_OPERANDS] = {[SINK_SINKS]      = make_random(format, shape->heads, 4, 2),
                                              [SINK_OUT]        = in[ATTENTION_OUT],
                                              [SINK_STATISTICS] = in[ATTENTION_STATISTICS]};
    struct buffer       slope              = make_random(format, queries, 3, 1);
    struct buffer       back[OP_OPERANDS]  = {[ATTENTION_GRADIENT_OUT]          = slope,
                                              [ATTENTION_GRADIENT_QUERY_IN]     = in[ATTENTION_QUERY],
                                              [ATTENTION_GRADIENT_KEY_VALUE_IN] = in[ATTENTION_KEY_VALUE],
                                              [ATTENTION_GRADIENT_OUT_IN]       = in[ATTENTION_OUT],
                                              [ATTENTION_GRADIENT_STATISTICS]   = in[ATTENTION_STATISTICS],
                                              [ATTENTION_GRADIENT_QUERY]        = make_output(format, queries),
                                              [ATTENTION_GRADIENT_KEY_VALUE]    = make_output(format, pairs)};
    struct buffer       sunk[OP_OPERANDS]  = {[SINK_GRADIENT_SINKS]      = sinks[SINK_SINKS],
                                              [SINK_GRADIENT_OUT]        = slope,
                                              [SINK_GRADIENT_OUT_IN]     = in[ATTENTION_OUT],
                                              [SINK_GRADIENT_STATISTICS] = in[ATTENTION_STATISTICS],
                                              [SINK_GRADIENT_SINK]       = adds ? make_random(format, shape->heads, 5, 1)
                                                                                : make_output(format, shape->heads)};
    struct op           kinds[]            = {{.kind = OP_ATTENTION_FORWARD, .shape.attention = *shape},
                                              {.kind = OP_SINK_FORWARD, .shape.attention = *shape},
                                              {.kind = OP_ATTENTION_BACKWARD, .shape.attention = *shape},
                                              {.kind = OP_SINK_BACKWARD, .accumulates = adds, .shape.attention = *shape}};
    struct sink_context context = {*shape, values_of(&in[ATTENTION_QUERY]), values_of(&in[ATTENTION_KEY_VALUE]),
                                   values_of(&sinks[SINK_SINKS])};
    double             *before = values_of(&sunk[SINK_GRADIENT_SINK]), *slopes = values_of(&slope);
    double             *out = values_of(&in[ATTENTION_OUT]), *statistics = values_of(&in[ATTENTION_STATISTICS]);
    attention_with(&context, context.query, context.pairs, context.sinks, out, statistics);

    run_op(&kinds[0], in, THREADS);
    run_op(&kinds[1], sinks, THREADS);
    run_op(&kinds[2], back, THREADS);
    run_op(&kinds[3], sunk, THREADS);

    // The output is rounded before and after the sink op.
    expect_close(&in[ATTENTION_OUT], out, 2 * tolerance(format), "attention with sinks");
    expect_close(&in[ATTENTION_STATISTICS], statistics, 2e-6, "log-sum-exp");
    double          bound    = format == FORMAT_F32 ? 0 : 0.04;
    struct function function = {of_query, &context, queries, queries, slopes, bound};
    expect_gradient(&function, context.query, &back[ATTENTION_GRADIENT_QUERY], NULL, "query gradient");
    function = (struct function){of_pairs, &context, pairs, queries, slopes, bound};
    expect_gradient(&function, context.pairs, &back[ATTENTION_GRADIENT_KEY_VALUE], NULL, "key and value gradient");
    function = (struct function){of_sinks, &context, shape->heads, queries, slopes, bound};
    expect_gradient(&function, context.sinks, &sunk[SINK_GRADIENT_SINK], adds ? before : NULL, "sinks gradient");
}

Test(host_bias, of_attention_with_sinks)
{
    static const struct attention_shape shapes[] = {
        {1, 3, 1, 1, 2, 0, 0.7f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 5, 4, 2, 3, 0, 0.5f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 6, 4, 1, 5, 0, 0.3f, true, false, 0, 0, 3, 0, 0, 0, 0},
    };
    for (int i = 0; i < 12; i++) {
        expect_sinks(&shapes[i / 4], types[i & 1], (i & 2) != 0);
    }
}
