// SPDX-License-Identifier: MIT
// Tests the text keys of ops, profiles with measured times of ops, and predictions that use these times.
#include "gswbench/measured.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/predict.h"
#include "line.h"
#include "success.h"

// A GEMM whose operands are BF16 and whose output is fp32.
static struct tensor     tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_F32}};
static const struct plan plan      = {.tensors = tensors};
static struct op         gemm(void)
{
    return (struct op){.kind          = OP_GEMM,
                       .operand_count = 3,
                       .operand       = {0, 0, 1},
                       .access        = {ACCESS_READ, ACCESS_READ, ACCESS_UPDATE},
                       .accumulates   = true,
                       .shape.gemm    = {.m = 64, .n = 32, .k = 128, .transpose_a = true}};
}

TestSuite(measured, .init = enter_folder, .fini = remove_folder);

static void expect_key(const struct op *op, const char *expected)
{
    struct op_key key, again;
    char          text[OP_KEY_BYTES];
    op_key_init(&key, &plan, op);
    cr_expect_str_eq(op_key_print(&key, text), expected);
    cr_assert(op_key_parse(text, &again), "%s", text);
    cr_expect_arr_eq((const char *)&again, (const char *)&key, sizeof(key), "%s", text);
}

Test(measured, writes_and_reads_keys_of_ops)
{
    struct op op = gemm();
    expect_key(&op, "gemm bf16,bf16,f32+ 64x32x128x1");
    op.shape.gemm.transpose_b = true;
    op.access[GEMM_C]         = ACCESS_WRITE;
    expect_key(&op, "gemm bf16,bf16,f32 64x32x128x1x1");
    op.shape.gemm.scaling_b = SCALING_128X128;
    expect_key(&op, "gemm bf16,bf16,f32 64x32x128x1x1x0x0x2");
    op = (struct op){.kind          = OP_NORM_FORWARD,
                     .operand_count = 7,
                     .operand       = {0, -1, 0, -1, -1, 0, 1},
                     .access        = {1, 0, 1, 0, 0, 2, 2},
                     .shape.rows    = {.rows = 256, .columns = 512, .epsilon = 1e-5F}};
    expect_key(&op, "norm_forward bf16,-,bf16,-,-,bf16,f32 256x512");
    op = (struct op){
        .kind            = OP_ATTENTION_FORWARD,
        .operand_count   = 4,
        .operand         = {0, 0, 0, 1},
        .access          = {1, 1, 2, 2},
        .shape.attention = {.batch = 2, .sequence = 128, .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = true}};
    expect_key(&op, "attention_forward bf16,bf16,bf16,f32 2x128x4x2x64x0x1");
}

Test(measured, tells_communications_apart_by_their_group)
{
    struct plan_group group   = {.size = 4, .ranks = (int64_t[]){3, 5, 7, 9}};
    struct plan       grouped = {.tensors = tensors, .groups = &group};
    struct op         op      = {.kind                = OP_ALL_GATHER,
                                 .operand_count       = 2,
                                 .operand             = {0, 0},
                                 .access              = {ACCESS_READ, ACCESS_WRITE},
                                 .shape.communication = {.elements = 4096}};
    struct op_key     key;
    char              text[OP_KEY_BYTES];
    op_key_init(&key, &grouped, &op);
    cr_expect_str_eq(op_key_print(&key, text), "all_gather bf16,bf16 4096x4x2");
    op = (struct op){.kind                = OP_RECEIVE,
                     .operand_count       = 2,
                     .operand             = {-1, 0},
                     .access              = {0, ACCESS_WRITE},
                     .shape.communication = {.elements = 4096, .peer = 2, .channel = 3}};
    op_key_init(&key, &grouped, &op);
    cr_expect_str_eq(op_key_print(&key, text), "receive -,bf16 4096x4x2");
}

Test(measured, refuses_what_is_no_key)
{
    static const char *const wrong[] = {"",
                                        "gemm",
                                        "gemm bf16",
                                        "gems bf16,bf16,bf16 1x1x1",
                                        "gemm bf17,bf16,bf16 1x1x1",
                                        "gemm bf16,bf16,bf16 1xax1",
                                        "gemm bf16,bf16,bf16 1x1x1 1",
                                        "gemm bf16,bf16,bf16 1x1x1x1x1x1x1x1x1x1x1x1x1x1",
                                        "gemm -,-,-,-,-,-,-,-,-,-,-,-,-,-,- 1x1x1",
                                        "gemm bf16,bf16,bf16 1x-1x1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct op_key key;
        cr_expect_not(op_key_parse(wrong[i], &key), "%s", wrong[i]);
    }
}

Test(measured, computes_the_cost_of_an_op_that_was_measured_by_its_time)
{
    struct hardware_config hardware;
    struct software_config software;
    struct measured_ops    measured;
    option_set_defaults(hardware_options, &hardware);
    option_set_defaults(software_options, &software);
    hardware.peak[RATE_BF16].value  = 1e15;
    hardware.memory_bandwidth.value = 1e12;
    hardware.multiprocessors        = 100;
    write_text("measured.ini", "[hardware]\nmultiprocessors = 100\n[measured]\n"
                               "gemm bf16,bf16,f32+ 64x32x128x1x1 = 2e-3 measured 4%\n"
                               "gemm bf16,bf16,f32+ 64x32x128x1 = 1e-3 measured 3%   ; the one that is asked for\n"
                               "gemm bf16,bf16,f32 64x32x128x1 = 4e-3 measured\n");
    REQUIRE(measured_read(&measured, "measured.ini"));
    cr_expect_eq(measured.count, 3);

    struct machine machine = {.hardware = &hardware, .software = &software, .measured = &measured};
    struct op      op      = gemm();
    cr_expect_eq(predict_cost_op(&machine, &plan, &op).seconds, 1e-3);
    cr_expect_eq(measured_find(&measured, &plan, &op)->spread_percent, 3.0);
    op.shape.gemm.m = 65;
    cr_expect_null(measured_find(&measured, &plan, &op));
    cr_expect_lt(predict_cost_op(&machine, &plan, &op).seconds, 1e-4);
    measured_free(&measured);
}

Test(measured, says_where_a_profile_is_wrong)
{
    struct measured_ops measured;
    for (const char *const *seconds = (const char *const[]){"soon", "0", "-1", NULL}; *seconds != NULL; seconds++) {
        write_text("wrong.ini", line_of("[hardware]\nmultiprocessors = 100\n[measured]\nclear f32 8 = %s\n", *seconds));
        EXPECT_ERROR(measured_read(&measured, "wrong.ini"), EXIT_CONFIG,
                     "wrong.ini:4: expected an op and its seconds, above 0, such as gemm bf16,bf16,bf16 "
                     "512x512x512x0x1 = 2e-5 measured 3%");
        measured_free(&measured);
    }
    write_text("twice.ini", "[measured]\nclear f32 8 = 1e-3\nclip f32,f32,f32 8 = 1e-3\nclear f32 8 = 2e-3\n");
    EXPECT_ERROR(measured_read(&measured, "twice.ini"), EXIT_CONFIG, "twice.ini: [measured] has clear f32 8 twice");
    measured_free(&measured);
    EXPECT_ERROR(measured_read(&measured, "absent.ini"), EXIT_CONFIG, "absent.ini: cannot be read");
}
