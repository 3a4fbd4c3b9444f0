// SPDX-License-Identifier: MIT
// Tests attention, attention sinks and RoPE on the host backend. The forward pass is compared with plain loops in
// double, the backward pass with central differences. Also compares RoPE of latent attention with its definition. Its
// gradient f' is tested by the adjoint identity <g, f(x)> = <f'(g), x>, for random x and g.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "host.h"
#include "reference.h"

Test(host_attention, splits_and_rotates_heads)
{
    static const int64_t sizes[][6] = {{1, 1, 1, 1, 2, 2}, {2, 5, 4, 2, 8, 8}, {1, 7, 6, 1, 10, 4}, {2, 3, 2, 2, 6, 0}};
    for (int i = 0; i < 16; i++) {
        enum format            format = types[i & 1];
        bool                   norms  = i >= 8;
        const int64_t         *size   = sizes[i / 2 % 4];
        struct attention_shape shape  = {size[0], size[1], size[2], size[3], size[4], size[5], 0, false,
                                         false,   0,       1e-3f,   0,       0,       0,       0, 0};
        struct op              op     = {.kind = OP_ROPE_FORWARD, .shape.attention = shape};
        struct buffer          buffers[OP_OPERANDS];
        make_slots(&op, norms ? "fxxxx" : "fxxx", format, buffers);
        double *scale = norms ? values_of(&buffers[ROPE_SCALE]) : NULL;
        double *table = values_of(&buffers[ROPE_TABLE]), *packed = values_of(&buffers[ROPE_PACKED]);
        double *query = values_of(&buffers[ROPE_QUERY]), *pairs = values_of(&buffers[ROPE_KEY_VALUE]);
        reference_rope(&shape, table, scale, packed, query, pairs);

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[ROPE_QUERY], query, tolerance(format), "query");
        expect_close(&buffers[ROPE_KEY_VALUE], pairs, tolerance(format), "keys and values");
    }
}

static void expect_attention(const struct attention_shape *shape, enum format format)
{
    struct op     op = {.kind = OP_ATTENTION_FORWARD, .shape.attention = *shape};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "xxxf", format, buffers);
    double *query = values_of(&buffers[ATTENTION_QUERY]), *pairs = values_of(&buffers[ATTENTION_KEY_VALUE]);
    double *out = values_of(&buffers[ATTENTION_OUT]), *statistics = values_of(&buffers[ATTENTION_STATISTICS]);
    reference_attention(shape, query, pairs, out, statistics);

    run_op(&op, buffers, THREADS);

    expect_close(&buffers[ATTENTION_OUT], out, tolerance(format), "attention");
    expect_close(&buffers[ATTENTION_STATISTICS], statistics, 2e-6, "log-sum-exp");
}

Test(host_attention, attends_to_the_keys_that_a_query_sees)
{
    static const struct attention_shape shapes[] = {
        // Queries see all keys, or, if causal, the keys up to their own position.
        {1, 1, 1, 1, 1, 0, 1.0f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 5, 4, 2, 6, 0, 0.7f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {1, 131, 6, 3, 16, 0, 0.25f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 300, 2, 1, 8, 0, 0.3f, false, false, 0, 0, 0, 0, 0, 0, 0},
        {3, 257, 3, 3, 5, 0, 0.4f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {1, 64, 8, 1, 32, 0, 0.2f, false, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 131, 4, 2, 6, 0, 0.4f, true, false, 0, 0, 0, 4, 0, 0, 0},
        {1, 9, 2, 2, 3, 0, 0.4f, true, false, 0, 0, 0, 7, 0, 0, 0},
        // A query sees only the keys in its window, which ends at its own position.
        {2, 5, 4, 2, 6, 0, 0.7f, true, false, 0, 0, 1, 0, 0, 0, 0},
        {1, 131, 6, 3, 16, 0, 0.25f, true, false, 0, 0, 7, 0, 0, 0, 0},
        {1, 300, 2, 1, 8, 0, 0.3f, true, false, 0, 0, 96, 0, 0, 0, 0},
        {1, 300, 2, 1, 8, 0, 0.3f, true, false, 0, 0, 128, 0, 0, 0, 0},
        {2, 197, 3, 3, 5, 0, 0.4f, true, false, 0, 0, 196, 0, 0, 0, 0},
        {1, 64, 8, 1, 32, 0, 0.2f, true, false, 0, 0, 64, 0, 0, 0, 0},
        // ALiBi is tested with all heads, with a tp shard of the heads, with windows, and with keys at other positions
        // than the queries.
        {2, 5, 4, 2, 6, 0, 0.7f, true, false, 0, 0, 0, 0, 4, 0, 0},
        {1, 131, 6, 3, 16, 0, 0.25f, true, false, 0, 0, 0, 0, 12, 6, 0},
        {1, 300, 2, 1, 8, 0, 0.3f, false, false, 0, 0, 0, 0, 7, 2, 300},
        {1, 200, 3, 1, 8, 0, 0.3f, true, false, 0, 0, 96, 0, 3, 0, 0},
        {2, 131, 4, 2, 6, 0, 0.4f, true, false, 0, 0, 0, 4, 8, 4, 0},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        expect_attention(&shapes[i], FORMAT_F32);
        expect_attention(&shapes[i], FORMAT_BF16);
    }
}

// The scores exceed the range of exp() in fp32, so softmax must subtract the maximum first.
Test(host_attention, attends_to_keys_with_large_scores)
{
    struct attention_shape shape = {1, 2, 1, 1, 1, 0, 1.0f, false, false, 0, 0, 0, 0, 0, 0, 0};
    struct op              op    = {.kind = OP_ATTENTION_FORWARD, .shape.attention = shape};
    struct buffer          buffers[OP_OPERANDS];
    const double           query[] = {1000, -1000}, pairs[] = {1, 3, 2, 5};
    make_slots(&op, "ffff", FORMAT_F32, buffers);
    for (int i = 0; i < 4; i++) {
        set(&buffers[ATTENTION_QUERY], i % 2, query[i % 2]);
        set(&buffers[ATTENTION_KEY_VALUE], i, pairs[i]);
    }

    run_op(&op, buffers, 1);

    cr_assert_float_eq(get(&buffers[ATTENTION_OUT], 0), 5.0, 1e-6);
    cr_assert_float_eq(get(&buffers[ATTENTION_OUT], 1), 3.0, 1e-6);
    cr_assert_eq(get(&buffers[ATTENTION_STATISTICS], 0), 2000.0);
    cr_assert_eq(get(&buffers[ATTENTION_STATISTICS], 1), -1000.0);
}

struct attention_context {
    struct attention_shape shape;
    double                *query, *pairs, *sinks;    // sinks: NULL if there are none
};

// Attention in double. If sinks are given, the sum of a softmax includes the score of the head's sink.
static void attention_with(const struct attention_context *context, const double *query, const double *pairs,
                           const double *sinks, double *out, double *statistics)
{
    const struct attention_shape *shape = &context->shape;
    int64_t                       count = shape->batch * shape->heads * shape->sequence;
    double                       *sums  = make_space(sizeof(*sums) * (size_t)count);
    reference_attention(shape, query, pairs, out, sums);
    for (int64_t i = 0; i < count && sinks != NULL; i++) {
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
    const struct attention_context *with = context;
    attention_with(with, in, with->pairs, with->sinks, out, NULL);
}
static void of_pairs(const void *context, const double *in, double *out)
{
    const struct attention_context *with = context;
    attention_with(with, with->query, in, with->sinks, out, NULL);
}
static void of_sinks(const void *context, const double *in, double *out)
{
    const struct attention_context *with = context;
    attention_with(with, with->query, with->pairs, in, out, NULL);
}

// Compares four ops with central differences. In the forward pass, the sink op follows the attention op. The backward
// pass of attention is the same with sinks, and another op computes the gradient of the sinks.
static void expect_attention_gradient(const struct attention_shape *shape, enum format format, bool has_sinks,
                                      bool adds)
{
    struct op     ops[] = {{.kind = OP_ATTENTION_FORWARD, .shape.attention = *shape},
                           {.kind = OP_SINK_FORWARD, .shape.attention = *shape},
                           {.kind = OP_ATTENTION_BACKWARD, .shape.attention = *shape},
                           {.kind = OP_SINK_BACKWARD, .accumulates = adds, .shape.attention = *shape}};
    struct buffer in[OP_OPERANDS], sinks[OP_OPERANDS], back[OP_OPERANDS], sunk[OP_OPERANDS];
    make_slots(&ops[0], "xxxf", format, in);
    make_slots(&ops[1], "xxf", format, sinks);
    make_slots(&ops[2], "xxxxfxx", format, back);
    make_slots(&ops[3], "xxxfx", format, sunk);
    memcpy(&sinks[SINK_OUT], &in[ATTENTION_OUT], 2 * sizeof(*in));    // also the statistics, the next operand
    // query, keys and values, output, and statistics.
    memcpy(&back[ATTENTION_GRADIENT_QUERY_IN], in, 4 * sizeof(*in));
    memcpy(&sunk[SINK_GRADIENT_OUT_IN], &in[ATTENTION_OUT], 2 * sizeof(*in));
    back[ATTENTION_GRADIENT_OUT]     = make_random(format, in[ATTENTION_OUT].elements, 3, 1);
    sunk[SINK_GRADIENT_SINKS_IN]     = sinks[SINK_SINKS];
    sunk[SINK_GRADIENT_OUT]          = back[ATTENTION_GRADIENT_OUT];
    struct attention_context context = {*shape, values_of(&in[ATTENTION_QUERY]), values_of(&in[ATTENTION_KEY_VALUE]),
                                        has_sinks ? values_of(&sinks[SINK_SINKS]) : NULL};
    double *before = values_of(&sunk[SINK_GRADIENT_SINKS]), *slopes = values_of(&back[ATTENTION_GRADIENT_OUT]);
    double *out = values_of(&in[ATTENTION_OUT]), *statistics = values_of(&in[ATTENTION_STATISTICS]);
    attention_with(&context, context.query, context.pairs, context.sinks, out, statistics);

    for (int i = 0; i < 4; i++) {
        if (has_sinks || i % 2 == 0) {
            run_op(&ops[i], i == 0 ? in : i == 1 ? sinks : i == 2 ? back : sunk, THREADS);
        }
    }

    // With sinks, the output is rounded before and after the sink op, and the backward pass reads the rounded output.
    double  bound = format == FORMAT_F32 ? 0 : 0.04;
    int64_t outs  = in[ATTENTION_OUT].elements;
    expect_close(&in[ATTENTION_OUT], out, (has_sinks ? 2 : 1) * tolerance(format), "attention");
    expect_close(&in[ATTENTION_STATISTICS], statistics, 2e-6, "log-sum-exp");
    struct function function = {of_query, &context, in[ATTENTION_QUERY].elements, outs, slopes, bound};
    expect_gradient(&function, context.query, &back[ATTENTION_GRADIENT_QUERY], NULL, "query gradient");
    function = (struct function){of_pairs, &context, in[ATTENTION_KEY_VALUE].elements, outs, slopes, bound};
    expect_gradient(&function, context.pairs, &back[ATTENTION_GRADIENT_KEY_VALUE], NULL, "key and value gradient");
    function = (struct function){of_sinks, &context, shape->heads, outs, slopes, bound};
    if (has_sinks) {
        expect_gradient(&function, context.sinks, &sunk[SINK_GRADIENT_SINKS], adds ? before : NULL, "sinks gradient");
    }
}

Test(host_attention, of_attention)
{
    static const struct attention_shape shapes[] = {
        {1, 3, 1, 1, 2, 0, 0.7f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 5, 4, 2, 3, 0, 0.5f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {1, 6, 3, 3, 4, 0, 0.5f, false, false, 0, 0, 0, 0, 0, 0, 0},
        {1, 5, 4, 1, 5, 0, 0.3f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {1, 5, 4, 2, 6, 0, 0.3f, true, false, 0, 0, 0, 4, 0, 0, 0},
        {2, 4, 2, 2, 3, 0, 0.5f, true, false, 0, 0, 2, 5, 0, 0, 0},
        // These shapes have windows.
        {2, 5, 4, 2, 3, 0, 0.5f, true, false, 0, 0, 2, 0, 0, 0, 0},
        {1, 6, 3, 3, 4, 0, 0.5f, true, false, 0, 0, 4, 0, 0, 0, 0},
        {1, 120, 1, 1, 2, 0, 0.3f, true, false, 0, 0, 30, 0, 0, 0, 0},
        // These shapes have ALiBi.
        {2, 5, 4, 2, 3, 0, 0.5f, true, false, 0, 0, 0, 0, 4, 0, 0},
        {1, 6, 3, 3, 4, 0, 0.5f, false, false, 0, 0, 0, 0, 6, 3, 9},
        {1, 120, 1, 1, 2, 0, 0.3f, true, false, 0, 0, 30, 0, 5, 4, 0},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        expect_attention_gradient(&shapes[i], FORMAT_F32, false, false);
        expect_attention_gradient(&shapes[i], FORMAT_BF16, false, false);
    }
}

Test(host_attention, of_attention_over_several_blocks)
{
    struct attention_shape shape = {1, 150, 1, 1, 2, 0, 0.7f, true, false, 0, 0, 0, 0, 0, 0, 0};
    expect_attention_gradient(&shape, FORMAT_F32, false, false);
}

Test(host_attention, of_attention_with_sinks)
{
    static const struct attention_shape shapes[] = {
        {1, 3, 1, 1, 2, 0, 0.7f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 5, 4, 2, 3, 0, 0.5f, true, false, 0, 0, 0, 0, 0, 0, 0},
        {2, 6, 4, 1, 5, 0, 0.3f, true, false, 0, 0, 3, 0, 0, 0, 0},
    };
    for (int i = 0; i < 12; i++) {
        expect_attention_gradient(&shapes[i / 4], types[i & 1], true, (i & 2) != 0);
    }
}

struct rope_context {
    struct attention_shape shape;
    double                *table, *scale, *packed;    // scale: NULL without QK norm
};

static void rope_of(const void *context, const double *in, double *out)
{
    const struct rope_context *rope = context;
    int64_t queries = rope->shape.batch * rope->shape.sequence * rope->shape.heads * rope->shape.head_dim;
    reference_rope(&rope->shape, rope->table, rope->scale, in, out, out + queries);
}

static void rope_of_scale(const void *context, const double *in, double *out)
{
    const struct rope_context *rope = context;
    int64_t queries = rope->shape.batch * rope->shape.sequence * rope->shape.heads * rope->shape.head_dim;
    reference_rope(&rope->shape, rope->table, in, rope->packed, out, out + queries);
}

static void expect_rope_gradient(const int64_t sizes[2], enum format format, bool norms, bool accumulates)
{
    struct attention_shape shape = {2, 3, 4, 2, sizes[0], sizes[1], 0, false, false, 0, 1e-3f, 0, 0, 0, 0, 0};
    int64_t       queries = 6 * 4 * shape.head_dim, pairs = 6 * 4 * shape.head_dim, scales = 2 * shape.head_dim;
    struct op     backward = {.kind = OP_ROPE_BACKWARD, .accumulates = accumulates, .shape.attention = shape};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&backward, norms ? "fxxxxxf" : "fxxx-f", format, buffers);
    double *before = accumulates ? values_of(&buffers[ROPE_SCALE_GRADIENT]) : NULL;
    double *slopes = make_space(sizeof(*slopes) * (size_t)(queries + pairs));
    for (int64_t j = 0; j < queries + pairs; j++) {
        slopes[j] = j < queries ? get(&buffers[ROPE_QUERY], j) : get(&buffers[ROPE_KEY_VALUE], j - queries);
    }

    run_op(&backward, buffers, THREADS);

    struct rope_context context  = {shape, values_of(&buffers[ROPE_TABLE]),
                                   norms ? values_of(&buffers[ROPE_SCALE]) : NULL, values_of(&buffers[ROPE_PACKED_IN])};
    struct function     function = {rope_of, &context, queries + pairs, queries + pairs, slopes, 0};
    expect_gradient(&function, context.packed, &buffers[ROPE_PACKED], NULL, "rope gradient");
    if (norms) {
        function.run    = rope_of_scale;
        function.inputs = scales;
        expect_gradient(&function, context.scale, &buffers[ROPE_SCALE_GRADIENT], before, "gradient of scales of heads");
    }
}

Test(host_attention, of_rope)
{
    static const int64_t sizes[][2] = {{8, 8}, {8, 4}, {6, 0}};
    for (int i = 0; i < 6; i++) {
        expect_rope_gradient(sizes[i / 2], types[i & 1], false, false);
    }
}

Test(host_attention, of_rope_behind_a_norm_of_heads)
{
    static const int64_t sizes[][2] = {{8, 8}, {8, 4}, {6, 0}};
    for (int i = 0; i < 12; i++) {
        expect_rope_gradient(sizes[i / 4], types[i & 1], true, (i & 2) != 0);
    }
}

enum { BATCH = 2, SEQUENCE = 5, HEADS = 3, ROTARY = 4, PLAIN = 6, HEAD = PLAIN + ROTARY, VALUE = 7 };
enum { TOKENS = BATCH * SEQUENCE, QUERIES = TOKENS * HEADS * HEAD, UP = TOKENS * HEADS * (PLAIN + VALUE) };
enum { SHARED = TOKENS * ROTARY, PAIRS = TOKENS * HEADS * (HEAD + VALUE) };

static struct op op_of(enum op_kind kind)
{
    return (struct op){.kind            = (uint8_t)kind,
                       .shape.attention = {BATCH, SEQUENCE, HEADS, HEADS, HEAD, ROTARY, .value_dim = VALUE}};
}

static struct buffer new_table(void)
{
    struct buffer table = make_output(FORMAT_F32, SEQUENCE * ROTARY);
    for (int64_t i = 0; i < SEQUENCE * ROTARY / 2; i++) {
        set(&table, 2 * i, cos(0.3 * (double)i));
        set(&table, 2 * i + 1, sin(0.3 * (double)i));
    }
    return table;
}

// Returns element i of a rotated vector. The vector starts at element `at` of the buffer.
static double rotated(const struct buffer *in, int64_t at, int64_t i, const struct buffer *table, int64_t position)
{
    int64_t pair = i % (ROTARY / 2), angle = position * ROTARY + 2 * pair;
    double  a = get(in, at + pair), b = get(in, at + pair + ROTARY / 2);
    return i < ROTARY / 2 ? a * get(table, angle) - b * get(table, angle + 1)
                          : a * get(table, angle + 1) + b * get(table, angle);
}

Test(latent_rope, rotates_the_end_of_each_head_and_gives_all_heads_one_key)
{
    struct op     op = op_of(OP_LATENT_ROPE_FORWARD);
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "ffffff", FORMAT_F32, buffers);
    buffers[LATENT_ROPE_TABLE] = new_table();
    const struct buffer *table = &buffers[LATENT_ROPE_TABLE], *up = &buffers[LATENT_ROPE_KEY_VALUE_UP];

    run_op(&op, buffers, THREADS);

    for (int64_t row = 0; row < TOKENS * HEADS; row++) {
        int64_t token = row / HEADS, head = row % HEADS, position = token % SEQUENCE;
        int64_t key   = token * HEADS * (HEAD + VALUE) + head * HEAD;
        int64_t value = token * HEADS * (HEAD + VALUE) + HEADS * HEAD + head * VALUE;
        for (int64_t i = 0; i < HEAD; i++) {
            const struct buffer *in = &buffers[LATENT_ROPE_QUERY_UP], *shared = &buffers[LATENT_ROPE_SHARED_KEY];
            double               q =
                i < PLAIN ? get(in, row * HEAD + i) : rotated(in, row * HEAD + PLAIN, i - PLAIN, table, position);
            double k = i < PLAIN ? get(up, row * (PLAIN + VALUE) + i)
                                 : rotated(shared, token * ROTARY, i - PLAIN, table, position);
            cr_assert_float_eq(get(&buffers[LATENT_ROPE_QUERY], row * HEAD + i), q, 1e-6);
            cr_assert_float_eq(get(&buffers[LATENT_ROPE_KEY_VALUE], key + i), k, 1e-6);
        }
        for (int64_t i = 0; i < VALUE; i++) {
            cr_assert_eq(get(&buffers[LATENT_ROPE_KEY_VALUE], value + i), get(up, row * (PLAIN + VALUE) + PLAIN + i));
        }
    }
}

static double product(const struct buffer *one, const struct buffer *other, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += get(one, i) * get(other, i);
    }
    return sum;
}

// Makes one of the three inputs random and the other two zero, so that each input's gradient is tested alone.
Test(latent_rope, sends_back_to_each_input_what_it_gave)
{
    static const int     inputs[] = {LATENT_ROPE_QUERY_UP, LATENT_ROPE_KEY_VALUE_UP, LATENT_ROPE_SHARED_KEY};
    static const int64_t sizes[]  = {QUERIES, UP, SHARED};
    for (int i = 0; i < 3; i++) {
        struct op     forward = op_of(OP_LATENT_ROPE_FORWARD), backward = op_of(OP_LATENT_ROPE_BACKWARD);
        struct buffer made[OP_OPERANDS], sent[OP_OPERANDS];
        make_slots(&forward, "ffffff", FORMAT_F32, made);
        make_slots(&backward, "ffffff", FORMAT_F32, sent);
        made[LATENT_ROPE_TABLE] = sent[LATENT_ROPE_TABLE] = new_table();
        for (int j = 0; j < 3; j++) {
            made[inputs[j]] = make_random(FORMAT_F32, sizes[j], (uint64_t)j, i == j ? 1 : 0);
        }

        run_op(&forward, made, THREADS);
        run_op(&backward, sent, THREADS);

        double there = product(&made[LATENT_ROPE_QUERY], &sent[LATENT_ROPE_QUERY], QUERIES) +
                       product(&made[LATENT_ROPE_KEY_VALUE], &sent[LATENT_ROPE_KEY_VALUE], PAIRS);
        double back = product(&made[inputs[i]], &sent[inputs[i]], sizes[i]);
        cr_expect_float_eq(there, back, 1e-4, "input %d: %g and %g", i, there, back);
        cr_expect_gt(fabs(there), 1e-2);
    }
}

Test(latent_rope, joins_the_columns_that_it_has_split)
{
    struct rows_shape shape = {.rows = 5, .columns = 7, .valid_columns = 4};
    struct op         split = {.kind = OP_SPLIT, .shape.rows = shape}, join = {.kind = OP_JOIN, .shape.rows = shape};
    struct buffer     parts[OP_OPERANDS], whole[OP_OPERANDS];
    make_slots(&split, "fff", FORMAT_F32, parts);
    make_slots(&join, "fff", FORMAT_F32, whole);
    run_op(&split, parts, THREADS);
    whole[JOIN_FIRST] = parts[SPLIT_FIRST];
    whole[JOIN_REST]  = parts[SPLIT_REST];
    run_op(&join, whole, THREADS);

    for (int64_t i = 0; i < 35; i++) {
        cr_assert_eq(get(&whole[JOIN_OUT], i), get(&parts[SPLIT_IN], i));
        cr_assert_eq(get(i % 7 < 4 ? &parts[SPLIT_FIRST] : &parts[SPLIT_REST],
                         i / 7 * (i % 7 < 4 ? 4 : 3) + i % 7 - (i % 7 < 4 ? 0 : 4)),
                     get(&parts[SPLIT_IN], i));
    }
}
