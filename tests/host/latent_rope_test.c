// SPDX-License-Identifier: MIT
// Compares RoPE of latent attention with its definition. Its gradient f' is tested by the adjoint identity <g, f(x)> =
// <f'(g), x>, for random x and g.
#include <criterion/criterion.h>
#include <math.h>

#include "host.h"

enum { BATCH = 2, SEQUENCE = 5, HEADS = 3, ROTARY = 4, PLAIN = 6, HEAD = PLAIN + ROTARY, VALUE = 7 };
enum { TOKENS = BATCH * SEQUENCE, QUERIES = TOKENS * HEADS * HEAD, UP = TOKENS * HEADS * (PLAIN + VALUE) };
enum { SHARED = TOKENS * ROTARY, PAIRS = TOKENS * HEADS * (HEAD + VALUE) };

static struct op op_of(enum op_kind kind)
{
    return (struct op){.kind            = (uint8_t)kind,
                       .shape.attention = {.batch     = BATCH,
                                           .sequence  = SEQUENCE,
                                           .heads     = HEADS,
                                           .kv_heads  = HEADS,
                                           .head_dim  = HEAD,
                                           .rotary    = ROTARY,
                                           .value_dim = VALUE}};
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
