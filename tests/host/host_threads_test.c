// SPDX-License-Identifier: MIT
// Results are bitwise independent of the number of threads.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

// GEMM tiles and row sums use one summation order. outputs: bit set of operand slots.
static void expect_same_bits(const struct op *op, struct buffer *buffers, unsigned outputs)
{
    struct buffer first[OP_OPERANDS] = {0};
    for (int threads = 1; threads <= 5; threads++) {
        run_op(op, buffers, threads);
        for (int i = 0; i < OP_OPERANDS; i++) {
            size_t bytes = (size_t)format_bytes(buffers[i].format, buffers[i].elements);
            if ((outputs >> i & 1) == 0) {
                continue;
            }
            if (threads == 1) {
                first[i]      = buffers[i];
                first[i].data = memcpy(make_space(bytes), buffers[i].data, bytes);
            }
            cr_assert_eq(memcmp(first[i].data, buffers[i].data, bytes), 0, "%s: %d threads change operand %d",
                         op_name((enum op_kind)op->kind), threads, i);
        }
    }
}

Test(host_threads, change_no_bit_of_any_result)
{
    for (int i = 0; i < TYPES; i++) {
        struct op     gemm = {.kind = OP_GEMM, .shape.gemm = {.m = 601, .n = 770, .k = 1000, .transpose_a = true}};
        struct buffer gemms[OP_OPERANDS] = {make_random(types[i], 601 * 1000, 1, 1),
                                            make_random(types[i], 1000 * 770, 2, 1),
                                            make_output(FORMAT_F32, 601 * 770)};
        expect_same_bits(&gemm, gemms, 1u << GEMM_C);

        struct op norm = {.kind = OP_NORM_BACKWARD, .shape.rows = {.rows = 333, .columns = 65, .variant = NORM_LAYER}};
        struct buffer norms[OP_OPERANDS] = {make_random(types[i], 333 * 65, 1, 1),
                                            make_random(types[i], 333 * 65, 2, 1),
                                            make_random(types[i], 65, 3, 1),
                                            make_random(FORMAT_F32, 333 * 2, 4, 1),
                                            make_random(types[i], 333 * 65, 5, 1),
                                            make_output(types[i], 333 * 65),
                                            make_output(types[i], 65),
                                            make_output(types[i], 65)};
        expect_same_bits(&norm, norms, 1u << NORM_GRADIENT_IN | 1u << NORM_GRADIENT_WEIGHT | 1u << NORM_GRADIENT_BIAS);

        struct op     squares             = {.kind = OP_SQUARE_SUM, .shape.elements.elements = 200003};
        struct buffer square[OP_OPERANDS] = {make_random(types[i], 200003, 1, 1), make_output(FORMAT_F32, 1)};
        expect_same_bits(&squares, square, 1u << SQUARE_SUM_OUT);

        struct op attention = {
            .kind            = OP_ATTENTION_FORWARD,
            .shape.attention = {
                .batch = 2, .sequence = 200, .heads = 6, .kv_heads = 3, .head_dim = 16, .scale = 0.3f, .causal = true}};
        struct buffer attentions[OP_OPERANDS] = {make_random(types[i], 400 * 96, 1, 1),
                                                 make_random(types[i], 400 * 96, 2, 1), make_output(types[i], 400 * 96),
                                                 make_output(FORMAT_F32, 400 * 6)};
        expect_same_bits(&attention, attentions, 1u << ATTENTION_OUT | 1u << ATTENTION_STATISTICS);

        attention.kind                      = OP_ATTENTION_BACKWARD;
        struct buffer backward[OP_OPERANDS] = {
            make_random(types[i], 400 * 96, 1, 1),  make_random(types[i], 400 * 96, 2, 1),
            make_random(types[i], 400 * 96, 3, 1),  make_random(types[i], 400 * 96, 4, 1),
            make_random(FORMAT_F32, 400 * 6, 5, 1), make_output(types[i], 400 * 96),
            make_output(types[i], 400 * 96)};
        expect_same_bits(&attention, backward, 1u << ATTENTION_GRADIENT_QUERY | 1u << ATTENTION_GRADIENT_KEY_VALUE);
    }
}

// The middle third of the rows of three sequences; each expert drops a part of its choices.
Test(host_threads, change_no_bit_of_any_routing)
{
    struct routing_shape shape = {401, 33, 401, 1203, 3, 401, 8, 2, 2, 120, 0, 40, .auxiliary = 0.1f, .scale = 1};
    struct op            route = {.kind = OP_ROUTE_FORWARD, .shape.routing = shape};
    struct buffer        routes[OP_OPERANDS] = {make_random(FORMAT_F32, 1203 * 8, 1, 1),
                                                make_buffer(FORMAT_I32, 802),
                                                make_buffer(FORMAT_I32, 802),
                                                make_output(FORMAT_F32, 802),
                                                make_buffer(FORMAT_I32, 960),
                                                make_output(FORMAT_F32, 24),
                                                make_output(FORMAT_F32, 10)};
    expect_same_bits(&route, routes, 0x7e);
    for (int i = 0; i < TYPES; i++) {
        struct op     combine               = {.kind = OP_COMBINE_BACKWARD, .shape.routing = shape};
        struct buffer combines[OP_OPERANDS] = {
            make_random(types[i], 401 * 33, 1, 1), make_random(types[i], 960 * 33, 2, 1),
            make_buffer(FORMAT_I32, 802),          make_buffer(FORMAT_I32, 960),
            make_random(FORMAT_F32, 802, 3, 1),    make_output(types[i], 960 * 33),
            make_output(FORMAT_F32, 802)};
        for (int64_t slot = 0; slot < 960; slot++) {
            set(&combines[COMBINE_GRADIENT_SOURCES], slot, slot < 802 ? (double)(801 - slot) : -1);
        }
        expect_same_bits(&combine, combines, 1u << COMBINE_GRADIENT_IN | 1u << COMBINE_GRADIENT_GATES);
    }
}
