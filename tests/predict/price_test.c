// SPDX-License-Identifier: MIT
// Prices of ops against calculations by hand.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/config.h"
#include "round_machine.h"

enum { ELEMENTS = 2000000 };

// An op whose operands are all bf16.
static double price(const struct op *op)
{
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan            plan     = {.tensors = &tensor};
    struct hardware_config hardware = round_machine();
    return predict_price_op(&(struct machine){.hardware = &hardware}, &plan, op).seconds;
}

Test(price, prices_a_gemm_by_tiles_and_waves)
{
    // 32 x 16 tiles of 128 x 256 on 100 processors of 1e13 FLOP/s: between 6 waves and 5.12; 256 more steps of k.
    struct op op = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    expect_seconds(price(&op), (6 + 5.12) / 2 * 2 * 128 * 256 * 8448 / 1e13);
    op.accumulates = true;
    expect_seconds(price(&op), (6 + 5.12) / 2 * 2 * 128 * 256 * 8704 / 1e13);
    // One tile of 128 x 128 would keep one processor busy: four of them take a quarter of k each, and add up.
    op.shape.gemm = (struct gemm_shape){.m = 128, .n = 128, .k = 8192};
    expect_seconds(price(&op), 2 * 128 * 128 * (2048 + 512) / (1e13 * 0.92) + 4 * 8 * 128 * 128 / 1e12);
    // 48 tiles of 128 x 192 in two parts, since three would be more than the processors.
    op.shape.gemm = (struct gemm_shape){.m = 512, .n = 2304, .k = 65536};
    expect_seconds(price(&op), 2 * 128 * 192 * (32768 + 512) / 1e13 + 2 * 8 * 512 * 2304 / 1e12);
    // Of a short k it does not pay.
    op.shape.gemm = (struct gemm_shape){.m = 512, .n = 2304, .k = 128};
    expect_seconds(price(&op), 2 * 128 * 128 * (128 + 512) / (1e13 * 0.92));
}

Test(price, prices_a_gemm_of_fp8_operands_by_their_rate)
{
    // The rate is 0.70 of 2e15; beginning and end of a tile weigh four times as much.
    struct tensor          tensors[] = {{.format = FORMAT_E4M3}, {.format = FORMAT_BF16}};
    struct plan            plan      = {.tensors = tensors};
    struct hardware_config hardware  = round_machine();
    struct op              op        = {
                            .kind = OP_GEMM, .operand = {0, 0, 1}, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    hardware.peak[RATE_FP8].value = 2e15;
    struct machine machine        = {.hardware = &hardware};
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds,
                   (6 + 5.12) / 2 * 2 * 128 * 256 * (8192 + 1024) / (0.70 * 2e13));
}

Test(price, prices_what_multiplies_by_the_power_that_it_may_draw)
{
    // An eighth of the power, half of the clock; bytes move as before.
    struct tensor          tensor    = {.format = FORMAT_BF16};
    struct plan            plan      = {.tensors = &tensor};
    struct hardware_config hardware  = round_machine();
    struct machine         machine   = {.hardware = &hardware};
    struct op              gemm      = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    struct op              attention = {.kind = OP_ATTENTION_FORWARD,
                                        .shape.attention = {.batch = 1, .sequence = 512, .heads = 2, .kv_heads = 2, .head_dim = 64}};
    struct op              cast      = {.kind = OP_CAST, .shape.elements = {1000}};
    double                 before[]  = {price(&gemm), price(&attention), price(&cast)};
    hardware.power_share.value       = 0.125;
    expect_seconds(predict_price_op(&machine, &plan, &gemm).seconds, 2 * before[0]);
    expect_seconds(predict_price_op(&machine, &plan, &attention).seconds, 2 * before[1]);
    expect_seconds(predict_price_op(&machine, &plan, &cast).seconds, before[2]);
}

Test(price, prices_gemms_by_the_rate_of_their_wider_operand)
{
    // 1e14 in fp32, 1e15 in BF16; an attention of 512 keys reaches half of its share, and six arrays of fp32 are moved.
    struct tensor          tensors[] = {{.format = FORMAT_F32}, {.format = FORMAT_BF16}, {.format = FORMAT_E2M1}};
    struct plan            plan      = {.tensors = tensors};
    struct hardware_config hardware  = round_machine();
    struct machine         machine   = {.hardware = &hardware};
    struct op              op = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    hardware.peak[RATE_FP32].value = 1e14;
    hardware.peak[RATE_FP4].value  = 4e15;
    const struct {
        int32_t a, b;
        double  steps, rate;
    } cases[] = {{0, 0, 256, 1e14}, {0, 1, 256, 1e14}, {1, 0, 256, 1e14}, {1, 2, 256, 1e15}, {2, 2, 1024, 0.70 * 4e15}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        op.operand[GEMM_A] = cases[i].a;
        op.operand[GEMM_B] = cases[i].b;
        expect_seconds(predict_price_op(&machine, &plan, &op).seconds,
                       (6 + 5.12) / 2 * 2 * 128 * 256 * (8192 + cases[i].steps) / (cases[i].rate / 100));
    }
    op           = (struct op){.kind            = OP_ATTENTION_BACKWARD,
                               .shape.attention = {.batch = 1, .sequence = 512, .heads = 2, .kv_heads = 2, .head_dim = 64}};
    double pairs = 512 * 512;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds,
                   10 * 2 * 64 * pairs / (0.5 * 0.475 * 1e14) + 24.0 * 512 * 2 * 64 / 1e12);
}

Test(price, prices_a_copy_in_fp8_by_how_its_scale_is_found)
{
    // Of a scale that is known, one reading is enough; else the largest magnitude is looked for first.
    struct tensor          tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_E4M3}, {.format = FORMAT_F32}};
    struct plan            plan      = {.tensors = tensors};
    struct hardware_config hardware  = round_machine();
    struct machine         machine   = {.hardware = &hardware};
    struct op              op        = {.kind           = OP_QUANTIZE,
                                        .operand_count  = 7,
                                        .operand        = {0, 1, 1, 2, -1, 2, 2},
                                        .access         = {1, 2, 2, 2, 0, 1, 3},
                                        .shape.quantize = {.rows = 1000, .columns = 500}};
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, (4 * 500000.0 + 16) / 1e12);
    op.operand[QUANTIZE_SCALE] = op.operand[QUANTIZE_AMAX] = -1;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, (6 * 500000.0 + 4) / 1e12);

    // A norm that makes copies reads what it has stored, or else its input once more.
    op = (struct op){.kind          = OP_NORM_FORWARD,
                     .operand_count = OP_FUSED + QUANTIZE_OUT + 1,
                     .shape.rows    = {.rows = 1000, .columns = 500}};
    memset(op.operand, 0xff, sizeof(op.operand));
    op.operand[NORM_IN] = op.operand[NORM_OUT] = 0;
    op.operand[OP_FUSED + QUANTIZE_OUT]        = 1;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, (3 * 2 + 1) * 500000.0 / 1e12);
    op.operand[NORM_OUT] = -1;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, (2 * 2 + 1) * 500000.0 / 1e12);
}

Test(price, prices_ops_as_the_program_executes_them)
{
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct tensor          tensor = {.format = FORMAT_BF16};
    struct plan            plan   = {.tensors = &tensor};
    option_set_defaults(software_options, &software);
    struct machine machine      = {.hardware = &hardware, .software = &software};
    struct op      op           = {.kind          = OP_ACTIVATION_FORWARD,
                                   .operand_count = 2,
                                   .access        = {ACCESS_READ, ACCESS_WRITE},
                                   .shape.rows    = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    software.memory_bytes.value = 0.5;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 0.5 * 3.0 * 1000 * 500 * 2 / 1e12);

    // The optimizer has a share of its own, and so has the loss.
    op.tag.phase = PHASE_OPTIMIZER;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 3.0 * 1000 * 500 * 2 / 1e12);
    software.optimizer_bytes.value = 3.0;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 3.0 * 3.0 * 1000 * 500 * 2 / 1e12);
    op.tag.phase              = PHASE_FORWARD;
    op.kind                   = OP_CROSS_ENTROPY;
    double loss               = predict_price_op(&machine, &plan, &op).seconds;
    software.loss_bytes.value = 7.0;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 7.0 * loss);

    // Another library's products.
    op                        = (struct op){.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    software.gemm_share.value = 0.5;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 2.0 * price(&op));

    // 447 TFLOP/s are what the length allows, 350 the kernels.
    software.attention_forward.value = 350e12;
    op                               = (struct op){
                                      .kind            = OP_ATTENTION_FORWARD,
                                      .shape.attention = {
                                          .batch = 1, .sequence = 1024, .heads = 2, .kv_heads = 2, .head_dim = 128, .earlier = 512, .causal = true}};
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds,
                   4 * 2 * 128 * (1024.0 * 1025 / 2 + 1024 * 512) / 350e12);

    // 8 experts on 2 ranks: 4 of them here.
    software.expert_gap.value = 1e-3;
    op                        = (struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = {.experts = 8, .owners = 2}};
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 2.5e-3);
    software.expert_groups = true;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 1e-3);
    plan.precision.narrow_linears = 0xf;    // casts go expert by expert
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 2.5e-3);
}

// Copies of 16-bit numbers in FP8: read twice where the scale is found first, which takes the program four kernels.
Test(price, takes_a_gap_for_each_kernel_of_a_copy_that_finds_its_scale)
{
    struct tensor          tensors[] = {{.format = FORMAT_BF16}, {.format = FORMAT_E4M3}, {.format = FORMAT_F32}};
    struct plan            plan      = {.tensors = tensors};
    struct hardware_config hardware  = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    struct op              op      = {.kind           = OP_QUANTIZE,
                                      .operand_count  = 7,
                                      .operand        = {0, 1, -1, 2, -1, -1, -1},
                                      .shape.quantize = {.rows = 1000, .columns = 1000, .scaling = SCALING_WHOLE}};
    option_set_defaults(software_options, &software);
    hardware.kernel_gap.value = 1e-6;
    double one                = predict_price_op(&machine, &plan, &op).seconds;
    software.scale_kernels    = 4;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, one + 3e-6);
    op.operand[QUANTIZE_SCALE] = 2;    // which is known
    double known               = predict_price_op(&machine, &plan, &op).seconds;
    software.scale_kernels     = 1;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, known);
}

// What was measured here is what this program does: another one has its own number of kernels, or the copy already.
Test(price, leaves_measured_ops_what_the_program_does_otherwise)
{
    struct tensor          tensors[] = {{.format = FORMAT_BF16, .first_op = -1},
                                        {.format = FORMAT_E4M3, .first_op = 1},
                                        {.format = FORMAT_F32, .first_op = -1},
                                        {.format = FORMAT_BF16, .first_op = 0, .last_op = 1}};
    struct op              ops[]     = {{.kind = OP_ROTATE, .lane = LANE_TENSOR, .operand_count = 2, .operand = {0, 3}},
                                        {.kind           = OP_QUANTIZE,
                                         .operand_count  = 7,
                                         .operand        = {3, 1, -1, 2, -1, -1, -1},
                                         .shape.quantize = {.rows = 1000, .columns = 500, .scaling = SCALING_WHOLE}}};
    struct plan            plan      = {.tensors = tensors, .ops = ops};
    struct hardware_config hardware  = round_machine();
    struct software_config software;
    struct measured_op     op       = {.seconds = {.value = 7e-6}};
    struct measured_ops    measured = {.ops = &op, .count = 1};
    struct machine         machine  = {.hardware = &hardware, .software = &software, .measured = &measured};
    option_set_defaults(software_options, &software);
    hardware.kernel_gap.value = 1e-6;
    op_key_init(&op.key, &plan, &ops[1]);
    expect_seconds(predict_price_op(&machine, &plan, &ops[1]).seconds, 7e-6);
    software.scale_kernels = 4;
    expect_seconds(predict_price_op(&machine, &plan, &ops[1]).seconds, 10e-6);
    software.fp8_gathers = true;
    cr_expect_eq(predict_price_op(&machine, &plan, &ops[1]).seconds, 0.0);
}

// 1,024 rows of 512 numbers go to 2 of 8 experts, of which 4 are here and shared out over 4 ranks.
Test(price, copies_the_rows_of_experts_that_run_one_by_one)
{
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan            plan     = {.tensors = &tensor, .mesh.etp = 4};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    struct op              op      = {
                          .kind          = OP_ROUTE_FORWARD,
                          .shape.routing = {
                              .rows = 1024, .columns = 512, .total = 1024, .experts = 8, .top_k = 2, .owners = 2, .capacity = 256}};
    option_set_defaults(software_options, &software);
    double own                   = predict_price_op(&machine, &plan, &op).seconds;
    software.expert_copies.value = 3;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, own + 3 * 2 * 2.0 * 2048 * 4 * 512 / 1e12);
    op.shape.routing.quantum     = 16;    // as many as there are, not as there may be
    op.shape.routing.capacity    = 1024;
    plan.mesh.etp                = 1;
    software.expert_copies.value = 0;
    own                          = predict_price_op(&machine, &plan, &op).seconds;
    software.expert_copies.value = 3;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, own + 3 * 2 * 2.0 * 2048 * 512 / 1e12);
    op.shape.routing.owners      = 8;    // one expert
    double alone                 = predict_price_op(&machine, &plan, &op).seconds;
    software.expert_copies.value = 0;
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, alone);
}

// A weight's copy is that of the first microbatch, and rows that tp has gathered were cast before.
Test(price, takes_nothing_for_copies_that_the_program_has)
{
    struct tensor tensors[] = {{.format = FORMAT_E4M3, .storage = STORAGE_WEIGHT, .first_op = -1},
                               {.format = FORMAT_E4M3, .storage = STORAGE_ACTIVATION, .first_op = 1},
                               {.format = FORMAT_BF16, .storage = STORAGE_ACTIVATION, .first_op = 0, .last_op = 2},
                               {.format = FORMAT_F32, .storage = STORAGE_ACTIVATION, .first_op = -1}};
    struct op     ops[]     = {
                {.kind = OP_ROTATE, .lane = LANE_TENSOR, .operand_count = 2, .operand = {3, 2}},
                {.kind = OP_TRANSPOSE, .operand_count = 2, .operand = {0, 1}, .shape.rows = {.rows = 1000, .columns = 500}},
                {.kind           = OP_QUANTIZE,
                 .operand_count  = 7,
                 .operand        = {2, 1, -1, 3, -1, -1, -1},
                 .shape.quantize = {.rows = 1000, .columns = 500, .scaling = SCALING_WHOLE}}};
    struct plan            plan     = {.tensors = tensors, .ops = ops};
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct machine         machine = {.hardware = &hardware, .software = &software};
    option_set_defaults(software_options, &software);
    ops[1].tag.microbatch = 1;
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[1]).seconds, 0.0);
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[2]).seconds, 0.0);
    software.fp8_transposes_once = software.fp8_gathers = true;
    cr_expect_eq(predict_price_op(&machine, &plan, &ops[1]).seconds, 0.0);
    cr_expect_eq(predict_price_op(&machine, &plan, &ops[2]).seconds, 0.0);
    ops[0].kind = OP_ALL_GATHER;    // at once
    cr_expect_eq(predict_price_op(&machine, &plan, &ops[2]).seconds, 0.0);
    tensors[3].first_op = 0;    // a part of the slots of experts
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[2]).seconds, 0.0);
    tensors[3].first_op   = -1;
    ops[1].tag.microbatch = 0;
    ops[0].lane           = LANE_CONTEXT;
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[1]).seconds, 0.0);
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[2]).seconds, 0.0);
    tensors[0].storage    = STORAGE_ACTIVATION;
    ops[1].tag.microbatch = 1;
    cr_expect_gt(predict_price_op(&machine, &plan, &ops[1]).seconds, 0.0);
}

Test(price, prices_gemms_on_the_multiprocessors_that_they_do_not_leave)
{
    // 16 x 32 = 512 tiles of 128 x 256, on 64 of 100 multiprocessors: 8 full waves, each at the pace of a hundredth.
    struct tensor          tensor   = {.format = FORMAT_BF16};
    struct plan            plan     = {.tensors = &tensor};
    struct hardware_config hardware = round_machine();
    struct machine         machine  = {.hardware = &hardware, .spared_processors = 36};
    struct op              op = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    expect_seconds(predict_price_op(&machine, &plan, &op).seconds, 8 * 2.0 * 128 * 256 * (8192 + 256) / 1e13);
}

Test(price, prices_a_thin_gemm_by_its_bytes)
{
    struct op op   = {.kind          = OP_GEMM,
                      .operand_count = 3,
                      .access        = {ACCESS_READ, ACCESS_READ, ACCESS_UPDATE},
                      .shape.gemm    = {.m = 1000, .n = 100000, .k = 1}};
    op.accumulates = true;
    expect_seconds(price(&op), 2.0 * (1000 + 100000 + 2 * 1e8) / 1e12);
}

Test(price, prices_attention_by_its_length)
{
    // 1536 keys and half of 512: three quarters of 596 TFLOP/s. 4 FLOPs for each of the pairs and elements.
    struct op op = {
        .kind            = OP_ATTENTION_FORWARD,
        .shape.attention = {
            .batch = 1, .sequence = 1024, .heads = 2, .kv_heads = 2, .head_dim = 128, .earlier = 512, .causal = true}};
    double pairs = 1024.0 * 1025 / 2 + 1024 * 512;
    expect_seconds(price(&op), 4 * 2 * 128 * pairs / (0.75 * 596e12));
    op.kind = OP_ATTENTION_BACKWARD;
    expect_seconds(price(&op), 10 * 2 * 128 * pairs / (0.75 * 475e12) + 12.0 * 1024 * 2 * 128 / 1e12);
    op.kind                     = OP_ATTENTION_FORWARD;
    op.shape.attention.head_dim = 192;
    expect_seconds(price(&op), 4 * 2 * 192 * pairs / (0.75 * 0.9 * 596e12));
}

Test(price, prices_everything_else_by_the_bytes_it_moves)
{
    // An activation reads gate and up and writes as much as one of them; an update is read and written.
    struct op op = {.kind          = OP_ACTIVATION_FORWARD,
                    .operand_count = 2,
                    .access        = {ACCESS_READ, ACCESS_WRITE},
                    .shape.rows    = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    expect_seconds(price(&op), 3.0 * 1000 * 500 * 2 / 1e12);
    op = (struct op){.kind           = OP_CAST,
                     .operand_count  = 2,
                     .access         = {ACCESS_READ, ACCESS_UPDATE},
                     .shape.elements = {.elements = ELEMENTS}};
    expect_seconds(price(&op), 3.0 * ELEMENTS * 2 / 1e12);
    // Of an embedding's table, the rows of the tokens.
    op = (struct op){.kind          = OP_EMBEDDING_FORWARD,
                     .operand_count = 3,
                     .operand       = {-1, 0, 0},
                     .access        = {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                     .shape.rows    = {.rows = 10, .columns = 1000, .valid_columns = 32000}};
    expect_seconds(price(&op), 2.0 * 10 * 1000 * 2 / 1e12);
}

// A transfer of so many elements of bf16 in a group of so many ranks, each the given distance from the next.
// A gather among the first ranks of a job on nodes of 4 whose links connect 72 devices.
