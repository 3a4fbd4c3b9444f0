// SPDX-License-Identifier: MIT
// Tests names and FLOPs of ops.
#include <criterion/criterion.h>

#include "gswbench/op.h"

Test(op, names_every_kind_stream_and_phase_once)
{
    for (int kind = 0; kind < OP_COUNT; kind++) {
        cr_assert_not_null(op_name((enum op_kind)kind), "kind %d has no name", kind);
        for (int other = 0; other < kind; other++) {
            cr_assert_str_neq(op_name((enum op_kind)kind), op_name((enum op_kind)other));
        }
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        cr_assert_not_null(op_stream_name((enum stream)stream));
    }
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        cr_assert_not_null(op_phase_name((enum phase)phase));
    }
    cr_assert_str_eq(op_name(OP_NORM_FORWARD), "norm_forward");
    cr_assert_str_eq(op_stream_name(STREAM_GRADIENT_REDUCE), "gradient-reduce");
    cr_assert_str_eq(op_phase_name(PHASE_RECOMPUTE), "recompute");
}

Test(op, knows_which_kinds_are_communications)
{
    cr_assert_not(op_is_communication(OP_EMBEDDING_FORWARD));
    cr_assert_not(op_is_communication(OP_ADAMW));
    cr_assert(op_is_communication(OP_ALL_REDUCE));
    cr_assert(op_is_communication(OP_BROADCAST));
    cr_assert_not(op_is_communication(OP_COUNT));
}

Test(op, counts_two_flops_a_multiply_add)
{
    struct op gemm = {.kind = OP_GEMM, .shape.gemm = {.m = 3, .n = 5, .k = 7}};

    cr_assert_eq(op_flops(&gemm), 210.0);
}

Test(op, counts_flops_beyond_32_bits)
{
    struct op gemm = {.kind = OP_GEMM, .shape.gemm = {.m = 16384, .n = 128256, .k = 16384}};

    cr_assert_eq(op_flops(&gemm), 68856915689472.0);
}

Test(op, counts_only_the_keys_that_a_query_sees)
{
    struct attention_shape shape  = {.batch = 2, .sequence = 4, .heads = 6, .kv_heads = 2, .head_dim = 8};
    struct op              full   = {.kind = OP_ATTENTION_FORWARD, .shape.attention = shape};
    struct op              causal = full;
    causal.shape.attention.causal = true;
    struct op backward            = causal;
    backward.kind                 = OP_ATTENTION_BACKWARD;

    cr_assert_eq(op_flops(&full), 6144.0);        // 4 FLOPs x 2 x 6 x 8 x 16 pairs
    cr_assert_eq(op_flops(&causal), 3840.0);      // 10 of 16 pairs
    cr_assert_eq(op_flops(&backward), 9600.0);    // 2.5 times forward

    struct op window              = causal;
    window.shape.attention.window = 3;
    cr_assert_eq(op_flops(&window), 4.0 * 2 * 6 * 8 * 9);    // queries see 1, 2, 3 and 3 keys
    window.shape.attention.window = 4;
    cr_assert_eq(op_flops(&window), 3840.0);
    window.shape.attention.earlier = 2;
    cr_assert_eq(op_flops(&window), 4.0 * 2 * 6 * 8 * 15);    // queries see 3, 4, 4 and 4 keys
    window.shape.attention.earlier = 100;
    cr_assert_eq(op_flops(&window), 4.0 * 2 * 6 * 8 * 16);
}

Test(op, counts_no_flops_for_the_rest)
{
    struct op norm = {.kind = OP_NORM_FORWARD, .shape.rows = {.rows = 10, .columns = 10}};

    cr_assert_eq(op_flops(&norm), 0.0);
}
