// SPDX-License-Identifier: MIT
// Tests that every kind of op has a complete row in the op table, and that the rows are consistent. Also tests names
// and FLOPs of ops.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "folder.h"
#include "gswbench/backend.h"
#include "gswbench/measured.h"
#include "gswbench/op.h"
#include "gswbench/op_table.h"
#include "op_cases.h"

static bool has_case(enum op_kind kind)
{
    for (int i = 0; i < op_case_count; i++) {
        if (op_cases[i].op.kind == kind) {
            return true;
        }
    }
    return false;
}

Test(op_table, has_a_row_of_every_kind)
{
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        const struct op_row *row = &op_table[kind];
        cr_assert_not_null(row->shape, "%s has no row in src/op/op_table.c", op_name(kind));
        cr_expect_neq(row->cost, OP_COST_NONE, "no cost model for %s", op_name(kind));
        cr_expect_neq(row->part, OP_PART_NONE, "%s is in no part of a waterfall", op_name(kind));
        cr_expect_eq(row->cost == OP_COST_COMMUNICATION, op_is_communication(kind), "%s", op_name(kind));
        cr_expect_eq(row->part == OP_PART_EXPOSED, op_is_communication(kind), "%s", op_name(kind));
        cr_expect_eq(row->route != OP_ROUTE_NONE, op_is_communication(kind), "%s", op_name(kind));
    }
}

Test(op_table, knows_what_computes_every_kind_on_a_host_and_compares_it_on_devices)
{
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        cr_expect_eq(backend_host.run[kind] != NULL, !op_is_communication(kind), "host: %s", op_name(kind));
        cr_expect_eq(backend_null.run[kind] != NULL, !op_is_communication(kind), "null: %s", op_name(kind));
        cr_expect_eq(has_case(kind), !op_is_communication(kind), "%s is not in tests/support/op_cases.c",
                     op_name(kind));
    }
}

// The shapes of ops are a union. A function that reads the shape of another kind would read wrong fields.
Test(op_table, counts_and_costs_with_the_fields_of_the_kinds_own_shape)
{
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        const struct op_row *row = &op_table[kind];
        for (int slot = 0; slot < OP_SLOTS; slot++) {
            const struct op_slot *operand = &row->slots[slot];
            if (operand->use == OP_USE_NONE) {
                continue;
            }
            cr_assert_not_null(operand->size, "%s, slot %d", op_name(kind), slot);
            cr_expect(operand->size->shape == NULL || operand->size->shape == row->shape,
                      "%s: %s is sized by another shape", op_name(kind), operand->name);
            cr_expect(!operand->size->is_share || op_is_communication(kind), "%s: %s", op_name(kind), operand->name);
            cr_expect(!operand->is_table || row->shape == rows_fields, "%s: %s", op_name(kind), operand->name);
            cr_expect(operand->use != OP_USE_ADD_QUERY || row->shape == attention_fields, "%s", op_name(kind));
            cr_expect(operand->use != OP_USE_UNLESS_MASTER || kind == OP_ADAMW || kind == OP_MUON, "%s", op_name(kind));
            cr_expect(operand->need != OP_NEED_OWN_SCALE || kind == OP_QUANTIZE, "%s", op_name(kind));
            cr_expect(operand->need != OP_NEED_NO_MASTER || kind == OP_ADAMW || kind == OP_MUON, "%s", op_name(kind));
        }
        cr_expect_eq(row->cost == OP_COST_GEMM, row->shape == gemm_fields, "%s", op_name(kind));
        cr_expect((row->cost != OP_COST_ATTENTION_FORWARD && row->cost != OP_COST_ATTENTION_BACKWARD) ||
                      row->shape == attention_fields,
                  "%s", op_name(kind));
        cr_expect_eq(row->cost == OP_COST_ROUTE, kind == OP_ROUTE_FORWARD || kind == OP_ROUTE_BACKWARD);
        cr_expect(row->fused_output == 0 || row->shape == rows_fields, "%s", op_name(kind));
        cr_expect_eq(op_is_communication(kind), row->shape == communication_fields || row->shape == link_fields);
    }
}

// Returns the shape fields that the op's row marks with `use` (OP_FIELD_SHOWN: printed; OP_FIELD_KEY: in the key), as
// one line.
static const char *shape_of(const struct op *op, int use)
{
    static char text[256];
    int         length = 0;
    text[0]            = '\0';
    for (const struct op_field *field = op_table[op->kind].shape; field->name != NULL; field++) {
        if (field->uses & use) {
            length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%s %lld", length == 0 ? "" : ", ",
                               field->name, (long long)op_field_value(op, field));
        }
    }
    return text;
}

Test(op_table, names_the_numbers_of_each_shape)
{
    struct op merge = {.kind            = OP_ATTENTION_MERGE,
                       .shape.attention = {.batch    = 2,
                                           .sequence = 3,
                                           .heads    = 4,
                                           .kv_heads = 1,
                                           .head_dim = 5,
                                           .rotary   = 6,
                                           .causal   = true,
                                           .earlier  = 7,
                                           .window   = 8}};
    cr_expect_str_eq(shape_of(&merge, OP_FIELD_SHOWN), "batch 2, sequence 3, heads 4, kv_heads 1, head_dim 5");
    cr_expect_str_eq(shape_of(&merge, OP_FIELD_KEY),
                     "batch 2, sequence 3, heads 4, kv_heads 1, head_dim 5, rotary 6, "
                     "causal 1, adds_query 0, earlier 7, window 8, value_dim 0, sloped_heads 0");
    struct op gemm = {.kind       = OP_GEMM,
                      .sums_fast  = true,
                      .shape.gemm = {.m = 1, .n = 2, .k = 3, .transpose_b = true, .scaling_b = SCALING_128X128}};
    cr_expect_str_eq(shape_of(&gemm, OP_FIELD_KEY),
                     "m 1, n 2, k 3, transpose_a 0, transpose_b 1, sums_fast 1, scaling_a 0, scaling_b 2");
    struct op clear = {.kind = OP_CLEAR, .shape.elements = {.elements = 20}};
    cr_expect_str_eq(shape_of(&clear, OP_FIELD_SHOWN), "elements 20");
    struct op norm = {.kind          = OP_NORM_FORWARD,
                      .fused_scaling = SCALING_1X128,
                      .shape.rows    = {.rows = 2, .columns = 3, .parts = 4, .variant = NORM_LAYER}};
    cr_expect_str_eq(shape_of(&norm, OP_FIELD_KEY),
                     "rows 2, columns 3, valid_columns 0, parts 4, variant 1, fused_scaling 1");
    struct op send = {.kind = OP_SEND, .shape.communication = {.elements = 9, .group = 2, .peer = 1, .channel = 3}};
    cr_expect_str_eq(shape_of(&send, OP_FIELD_SHOWN), "elements 9, group 2, peer 1, channel 3");
    cr_expect_str_eq(shape_of(&send, OP_FIELD_KEY), "elements 9");
    send.kind = OP_BROADCAST;
    cr_expect_str_eq(shape_of(&send, OP_FIELD_SHOWN), "elements 9, group 2");
}

Test(op_table, says_what_the_peer_of_a_communication_is_and_which_operand_is_a_share)
{
    static const struct {
        enum op_kind kind;
        enum op_peer peer;
        int64_t      in, out;    // elements on each of 4 ranks
    } rows[] = {{OP_ALL_REDUCE, OP_PEER_NONE, 12, 12}, {OP_ALL_REDUCE_MAXIMUM, OP_PEER_NONE, 12, 12},
                {OP_ALL_GATHER, OP_PEER_NONE, 3, 12},  {OP_REDUCE_SCATTER, OP_PEER_NONE, 12, 3},
                {OP_ALL_TO_ALL, OP_PEER_NONE, 12, 12}, {OP_ROTATE, OP_PEER_PLACES, 12, 12},
                {OP_SEND, OP_PEER_END, 12, 12},        {OP_RECEIVE, OP_PEER_END, 12, 12},
                {OP_BROADCAST, OP_PEER_ROOT, 12, 12}};
    cr_assert_eq(sizeof(rows) / sizeof(rows[0]), OP_COUNT - OP_COMPUTE_COUNT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct op op = {.kind = (uint8_t)rows[i].kind, .shape.communication = {.elements = 12}};
        cr_expect_eq(op_table[op.kind].peer, rows[i].peer, "%s", op_name(rows[i].kind));
        cr_expect_eq(op_is_link(rows[i].kind), rows[i].peer == OP_PEER_END, "%s", op_name(rows[i].kind));
        cr_expect_eq(op_communication_elements(&op, COMMUNICATION_IN, 4), rows[i].in, "%s", op_name(rows[i].kind));
        cr_expect_eq(op_communication_elements(&op, COMMUNICATION_OUT, 4), rows[i].out, "%s", op_name(rows[i].kind));
        cr_expect_eq(op_operand_elements(&op, COMMUNICATION_OUT), -1, "its group says more");
    }
}

Test(op_table, has_room_for_every_shape_in_the_key_of_a_measured_time)
{
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        int count = op_is_communication(kind) ? 2 : 0;    // the group's ranks may be on several nodes
        for (const struct op_field *field = op_table[kind].shape; field->name != NULL; field++) {
            count += (field->uses & OP_FIELD_KEY) != 0;
        }
        cr_expect_leq(count, OP_KEY_NUMBERS, "%s", op_name(kind));
    }
}

Test(op_table, says_how_operands_are_used_and_how_large_they_are)
{
    struct op norm = {.kind = OP_NORM_BACKWARD, .operand_count = 8, .shape.rows = {.rows = 7, .columns = 11}};
    cr_expect_eq(op_operand_access(&norm, NORM_GRADIENT_WEIGHT), ACCESS_WRITE);
    cr_expect_eq(op_operand_elements(&norm, NORM_GRADIENT_STATISTICS), 14);
    cr_expect_eq(op_operand_elements(&norm, NORM_GRADIENT_BIAS), 11);
    cr_expect(op_operand_is_optional(&norm, NORM_GRADIENT_RESIDUAL));
    cr_expect_not(op_operand_is_optional(&norm, NORM_GRADIENT_X));
    norm.accumulates = true;
    cr_expect_eq(op_operand_access(&norm, NORM_GRADIENT_WEIGHT), ACCESS_UPDATE);

    struct op adamw             = {.kind = OP_ADAMW, .operand_count = 7, .shape.elements = {.elements = 5}};
    adamw.operand[ADAMW_MASTER] = -1;
    cr_expect_eq(op_operand_access(&adamw, ADAMW_WEIGHT), ACCESS_UPDATE);
    cr_expect_not(op_operand_is_optional(&adamw, ADAMW_WEIGHT));
    adamw.operand[ADAMW_MASTER] = 3;
    cr_expect_eq(op_operand_access(&adamw, ADAMW_WEIGHT), ACCESS_WRITE);
    cr_expect(op_operand_is_optional(&adamw, ADAMW_WEIGHT));
    cr_expect_eq(op_operand_elements(&adamw, ADAMW_HYPER), 9);

    struct op send = {.kind = OP_SEND, .shape.communication = {.elements = 9}};
    cr_expect_eq(op_operand_access(&send, COMMUNICATION_IN), ACCESS_READ);
    cr_expect_eq(op_operand_access(&send, COMMUNICATION_OUT), 0);
    cr_expect(op_operand_is_optional(&send, COMMUNICATION_OUT));
    cr_expect_eq(op_operand_elements(&send, COMMUNICATION_IN), -1);
}

// Plans and their verification both use the op table, so only this test finds a wrong access there.
Test(op_table, says_which_operands_ops_update)
{
    static const struct {
        enum op_kind kind;
        int          slot;
        enum access  access, accumulating;    // accumulating: of an op with .accumulates
    } rows[] = {
        {OP_CROSS_ENTROPY, CROSS_ENTROPY_LOGITS, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_QUANTIZE, QUANTIZE_AMAX, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_RESCALE, RESCALE_AMAX, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_RESCALE, RESCALE_HISTORY, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_RESCALE, RESCALE_SCALE, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_RESCALE, RESCALE_FACTOR, ACCESS_WRITE, ACCESS_WRITE},
        {OP_MOMENTUM, MOMENTUM_FIRST, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_MUON, MUON_MASTER, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ADAMW, ADAMW_MASTER, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ADAMW, ADAMW_FIRST, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ADAMW, ADAMW_SECOND, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ADAMW, ADAMW_AMAX, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ALL_REDUCE, COMMUNICATION_OUT, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_ALL_REDUCE_MAXIMUM, COMMUNICATION_OUT, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_BROADCAST, COMMUNICATION_OUT, ACCESS_UPDATE, ACCESS_UPDATE},
        {OP_RECEIVE, COMMUNICATION_OUT, ACCESS_WRITE, ACCESS_WRITE},
        {OP_GEMM, GEMM_C, ACCESS_WRITE, ACCESS_UPDATE},
        {OP_LOSS_SUM, LOSS_SUM_OUT, ACCESS_WRITE, ACCESS_UPDATE},
        {OP_SQUARE_SUM, SQUARE_SUM_OUT, ACCESS_WRITE, ACCESS_UPDATE},
        {OP_ROUTE_FORWARD, ROUTE_STATISTICS, ACCESS_WRITE, ACCESS_UPDATE},
        {OP_ROPE_BACKWARD, ROPE_SCALE_GRADIENT, ACCESS_WRITE, ACCESS_UPDATE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct op op = {.kind = (uint8_t)rows[i].kind, .operand_count = OP_SLOTS};
        cr_expect_eq(op_operand_access(&op, rows[i].slot), rows[i].access, "%s, slot %d", op_name(rows[i].kind),
                     rows[i].slot);
        op.accumulates = true;
        cr_expect_eq(op_operand_access(&op, rows[i].slot), rows[i].accumulating, "%s, slot %d", op_name(rows[i].kind),
                     rows[i].slot);
    }

    struct op muon            = {.kind = OP_MUON, .operand_count = MUON_WEIGHT + 1};
    muon.operand[MUON_MASTER] = -1;
    cr_expect_eq(op_operand_access(&muon, MUON_WEIGHT), ACCESS_UPDATE);
    muon.operand[MUON_MASTER] = 3;
    cr_expect_eq(op_operand_access(&muon, MUON_WEIGHT), ACCESS_WRITE);
}

Test(op_table, says_the_same_of_copies_that_are_fused_to_an_op)
{
    struct op norm = {.kind          = OP_NORM_FORWARD,
                      .operand_count = OP_FUSED + QUANTIZE_AMAX + 1,
                      .fused_scaling = SCALING_1X128,
                      .shape.rows    = {.rows = 3, .columns = 256}};
    cr_expect(op_operand_is_optional(&norm, NORM_OUT));
    cr_expect_eq(op_operand_access(&norm, OP_FUSED + QUANTIZE_AMAX), ACCESS_UPDATE);
    cr_expect_eq(op_operand_elements(&norm, OP_FUSED + QUANTIZE_TRANSPOSED), 768);
    cr_expect_eq(op_operand_elements(&norm, OP_FUSED + QUANTIZE_INVERSE_SCALE), 6);
    cr_expect(op_operand_is_optional(&norm, OP_FUSED + QUANTIZE_INVERSE_SCALE));
    norm.fused_scaling                      = SCALING_WHOLE;
    norm.operand[OP_FUSED + QUANTIZE_SCALE] = -1;
    cr_expect_not(op_operand_is_optional(&norm, OP_FUSED + QUANTIZE_INVERSE_SCALE));
    norm.operand_count = NORM_STATISTICS + 1;
    cr_expect_not(op_operand_is_optional(&norm, NORM_OUT));
}

Test(op_table, says_what_is_read_twice)
{
    struct op quantize               = {.kind = OP_QUANTIZE, .operand_count = QUANTIZE_INVERSE_SCALE + 1};
    quantize.operand[QUANTIZE_SCALE] = -1;
    cr_expect(op_operand_is_read_twice(&quantize, QUANTIZE_IN));
    cr_expect_not(op_operand_is_read_twice(&quantize, QUANTIZE_INVERSE_SCALE));
    quantize.shape.quantize.scaling = SCALING_1X128;
    cr_expect_not(op_operand_is_read_twice(&quantize, QUANTIZE_IN));
    quantize.shape.quantize.scaling = SCALING_NV_SQUARE;
    cr_expect(op_operand_is_read_twice(&quantize, QUANTIZE_IN));
    cr_expect(op_operand_is_optional(&quantize, QUANTIZE_INVERSE_SCALE));

    struct op slope = {.kind = OP_ACTIVATION_BACKWARD, .operand_count = OP_FUSED + QUANTIZE_INVERSE_SCALE + 1};
    slope.operand[OP_FUSED + QUANTIZE_SCALE] = -1;
    slope.operand[ACTIVATION_GRADIENT_IN]    = 3;
    cr_expect_not(op_operand_is_read_twice(&slope, ACTIVATION_GRADIENT_OUT));
    slope.operand[ACTIVATION_GRADIENT_IN] = -1;
    cr_expect(op_operand_is_read_twice(&slope, ACTIVATION_GRADIENT_OUT));
    cr_expect(op_operand_is_read_twice(&slope, ACTIVATION_GRADIENT_IN_IN));
    slope.operand[OP_FUSED + QUANTIZE_SCALE] = 4;
    cr_expect_not(op_operand_is_read_twice(&slope, ACTIVATION_GRADIENT_OUT));

    struct op norm         = {.kind = OP_NORM_FORWARD, .operand_count = OP_FUSED + QUANTIZE_SCALE + 1};
    norm.operand[NORM_OUT] = -1;
    cr_expect(op_operand_is_read_twice(&norm, NORM_IN));
    cr_expect_not(op_operand_is_read_twice(&norm, NORM_BRANCH));
}

// Writes the names of the numbers in the key of a measured op, in the key's order.
static void list_numbers(enum op_kind kind, char numbers[static 256])
{
    FILE *file = fmemopen(numbers, 256, "w");
    cr_assert_not_null(file);
    const char *separator = "";
    for (const struct op_field *field = op_table[kind].shape; field->name != NULL; field++) {
        if (field->uses & OP_FIELD_KEY) {
            fprintf(file, "%s%s", separator, field->name);
            separator = ", ";
        }
    }
    fprintf(file, "%s", op_is_communication(kind) ? ", members, distance" : "");
    fclose(file);
}

// Prints a row of the table in docs/predictions.md: the numbers in the key of kind `first`, and every kind with the
// same numbers. Prints nothing if an earlier kind has the same numbers, because its row includes this kind.
static void describe(enum op_kind first, FILE *file)
{
    char numbers[256], others[256];
    list_numbers(first, numbers);
    for (enum op_kind kind = 0; kind < first; kind++) {
        list_numbers(kind, others);
        if (strcmp(numbers, others) == 0) {
            return;
        }
    }
    fprintf(file, "| %s | `%s`", numbers, op_name(first));
    for (enum op_kind kind = first + 1; kind < OP_COUNT; kind++) {
        list_numbers(kind, others);
        if (strcmp(numbers, others) == 0) {
            fprintf(file, ", `%s`", op_name(kind));
        }
    }
    fprintf(file, " |\n");
}

// To update the documentation, paste the output of a failing run.
Test(op_table, is_the_one_in_the_documentation)
{
    static char expected[1 << 14] = "| numbers of a shape, in order | ops |\n|---|---|\n";
    FILE       *rows              = fmemopen(expected, sizeof(expected), "a");
    cr_assert_not_null(rows);
    for (enum op_kind kind = 0; kind < OP_COUNT; kind++) {
        describe(kind, rows);
    }
    fputs("\n", rows);
    fclose(rows);
    const char *page = text_in(GSWBENCH_SOURCE_DIR "/docs/predictions.md");
    cr_expect_not_null(strstr(page, expected), "docs/predictions.md has another table of ops than:\n%s", expected);
}

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
