// SPDX-License-Identifier: MIT
// Tests that the number of threads does not change a single bit of any result.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

// Runs an op with 1 to 5 threads. The results must be equal bit by bit, because tiles of GEMMs and sums of rows have a
// fixed order of summation.
static void expect_same_bits_of(const struct op *op, const struct buffer *buffers)
{
    struct buffer first[OP_OPERANDS] = {0};
    for (int threads = 1; threads <= 5; threads++) {
        run_op(op, buffers, threads);
        for (int i = 0; i < OP_OPERANDS; i++) {
            size_t bytes = (size_t)format_bytes(buffers[i].format, buffers[i].elements);
            if (op->operand[i] < 0 || op->access[i] != ACCESS_WRITE) {
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

static void expect_same_bits(struct op op, const char *slots, enum format format)
{
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, slots, format, buffers);
    expect_same_bits_of(&op, buffers);
}

Test(host_threads, change_no_bit_of_any_result)
{
    for (int i = 0; i < TYPES; i++) {
        struct op attention = {
            .kind            = OP_ATTENTION_FORWARD,
            .shape.attention = {
                .batch = 2, .sequence = 200, .heads = 6, .kv_heads = 3, .head_dim = 16, .scale = 0.3f, .causal = true}};
        expect_same_bits(
            (struct op){.kind = OP_GEMM, .shape.gemm = {.m = 601, .n = 770, .k = 1000, .transpose_a = true}}, "xxf",
            types[i]);
        expect_same_bits(
            (struct op){.kind = OP_NORM_BACKWARD, .shape.rows = {.rows = 333, .columns = 65, .variant = NORM_LAYER}},
            "xxxfxxxx", types[i]);
        expect_same_bits((struct op){.kind = OP_SQUARE_SUM, .shape.elements.elements = 200003}, "xf", types[i]);
        expect_same_bits(attention, "xxxf", types[i]);
        attention.kind = OP_ATTENTION_BACKWARD;
        expect_same_bits(attention, "xxxxfxx", types[i]);
    }
}

// Routes the middle third of the rows of three sequences. The capacity is so small that each expert drops some rows.
Test(host_threads, change_no_bit_of_any_routing)
{
    struct routing_shape shape = {401, 33, 401, 1203, 3, 401, 8, 2, 2, 120, 0, 40, .auxiliary = 0.1f, .scale = 1};
    expect_same_bits((struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = shape}, "fiififf", FORMAT_F32);
    shape.groups = 4, shape.top_groups = 2;    // experts chosen apart from the scores that are counted
    expect_same_bits((struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = shape}, "fiififf", FORMAT_F32);
    for (int i = 0; i < TYPES; i++) {
        struct op     combine = {.kind = OP_COMBINE_BACKWARD, .shape.routing = shape};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&combine, "xxiifxf", types[i], buffers);
        for (int64_t slot = 0; slot < 960; slot++) {
            set(&buffers[COMBINE_GRADIENT_SOURCES], slot, slot < 802 ? (double)(801 - slot) : -1);
        }
        expect_same_bits_of(&combine, buffers);
    }
}
