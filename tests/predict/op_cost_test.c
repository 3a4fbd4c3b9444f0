// SPDX-License-Identifier: MIT
// Compares costs of ops with calculations by hand. Also tests the costs of an FP8 head: the rate of its GEMMs, and the
// bytes of casts.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/op_operands.h"
#include "round_machine.h"

enum { ELEMENTS = 2000000 };

TestSuite(op_cost, .init = init_round);

Test(op_cost, computes_the_cost_of_a_gemm_by_tiles_and_waves)
{
    // The GEMM has 32 x 32 tiles of 128 x 128 on 100 SMs of 1e13 FLOP/s each. It takes the mean of 10.24 and 11 waves.
    // Prologue and epilogue take the time of 256 steps of k.
    struct op op = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * 8448 / 1e13);
    op.accumulates = true;
    expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * 8704 / 1e13);
    // One tile of 128 x 128 would occupy one SM. Split-k by 8 uses eight SMs and then adds the parts.
    op.shape.gemm = (struct gemm_shape){.m = 128, .n = 128, .k = 65536};
    expect_cost(&op, 2 * 128 * 128 * (8192 + 512) / 1e13 + 8 * 8 * 128 * 128 / 1e12);
    // 50 tiles of 128 x 128 with split-k by 2 use all 100 SMs. Split-k by 3 would need more.
    op.shape.gemm = (struct gemm_shape){.m = 640, .n = 1280, .k = 65536};
    expect_cost(&op, 2.0 * 128 * 128 * (32768 + 512) / 1e13 + 2.0 * 8 * 640 * 1280 / 1e12);
    // For a short k, split-k gains nothing.
    op.shape.gemm = (struct gemm_shape){.m = 512, .n = 2304, .k = 128};
    expect_cost(&op, 2 * 128 * 128 * (128 + 512) / 1e13);
}

Test(op_cost, computes_the_cost_of_tiles_by_the_traffic_of_their_operands)
{
    // Loading a tile of 128 x 128 takes 2 times its compute time, and loading a tile of 128 x 256 takes 1.5 times.
    struct op op                           = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    given.hardware.gemm_tile_traffic.value = 2.0;
    double large                           = (6 + 5.12) / 2 * 2 * 128 * 256 * 8448 / 1e13;    // with tiles of 128 x 256
    expect_cost(&op, large);
    op.shape.gemm = (struct gemm_shape){.m = 512, .n = 2304, .k = 128};
    expect_cost(&op, 2 * 128 * 128 * (128 + 256) / 1e13 * 3.0 / 2.5);
}

Test(op_cost, adds_the_share_of_memory_time_that_a_gemm_does_not_hide)
{
    struct op op            = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    double    bytes         = 2.0 * (2 * 4096 * 8192 + 4096 * 4096);
    double    tiles         = (11 + 10.24) / 2 * 2 * 128 * 128 * 8448 / 1e13;
    given.tensors[1].format = FORMAT_E4M3;
    op.operand_count        = GEMM_C + 1;
    op.access[GEMM_A] = op.access[GEMM_B]    = ACCESS_READ;
    op.access[GEMM_C]                        = ACCESS_WRITE;
    given.hardware.gemm_memory_exposed.value = 0.5;
    expect_cost(&op, tiles + 0.5 * bytes / 1e12);
    // FP8 operands have half the bytes.
    bytes              = 2 * 4096 * 8192 + 2.0 * 4096 * 4096;
    op.operand[GEMM_A] = op.operand[GEMM_B]  = 1;
    given.hardware.peak[RATE_FP8].value      = 1e15;
    given.hardware.gemm_efficiency_fp8.value = 1.0;
    given.hardware.gemm_prologue_fp8.value   = 256.0;
    expect_cost(&op, tiles + 0.5 * bytes / 1e12);
}

Test(op_cost, computes_the_cost_of_fp8_gemms_by_how_they_accumulate)
{
    struct op op = {
        .kind = OP_GEMM, .sums_fast = true, .operand = {0, 0, 1}, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    given.tensors[0].format                      = FORMAT_E4M3;
    given.hardware.peak[RATE_FP8].value          = 2e15;
    given.hardware.gemm_split_accumulation.value = 1.25;
    double fast                                  = (11 + 10.24) / 2 * 2 * 128 * 128 * (8192 + 1024) / (0.70 * 2e13);
    expect_cost(&op, fast);
    op.sums_fast = false;
    expect_cost(&op, 1.25 * fast);
    op.shape.gemm.scaling_a         = SCALING_MX;
    given.hardware.gemm_mxfp8.value = 1.5;
    expect_cost(&op, 1.25 * 1.5 * fast);
    op.shape.gemm.scaling_a = SCALING_WHOLE;
    op.operand[GEMM_A] = op.operand[GEMM_B] = 1;    // BF16 always accumulates in fp32
    expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * 8448 / 1e13);
}

Test(op_cost, computes_the_cost_of_a_gemm_of_fp8_operands_by_their_rate)
{
    // FP8 GEMMs reach 0.70 of 2e15 FLOP/s. Their prologue and epilogue take four times as many steps of k.
    struct op op = {
        .kind = OP_GEMM, .operand = {0, 0, 1}, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    given.tensors[0].format             = FORMAT_E4M3;
    given.hardware.peak[RATE_FP8].value = 2e15;
    expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * (8192 + 1024) / (0.70 * 2e13));
    // In the last wave, a quarter of the idle SMs still work. FP8 GEMMs have their own gap after a kernel, even if the
    // gap of other kernels is shorter.
    given.hardware.gemm_smoothing_fp8.value = 0.25;
    given.hardware.gemm_gap_fp8.value       = 3e-6;
    given.hardware.kernel_gap.value         = 1e-6;
    expect_cost(&op, (3 * 11 + 10.24) / 4 * 2 * 128 * 128 * (8192 + 1024) / (0.70 * 2e13) + 3e-6);
    op.operand[GEMM_A] = 1;
    expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * (8192 + 256) / 1e13 + 1e-6);
}

Test(op_cost, computes_the_cost_of_what_multiplies_by_the_power_that_it_may_draw)
{
    // A fifth of the power is idle power. The GEMM may draw 0.3, so an eighth of the power above idle. Power grows with
    // the cube of the clock, so the clock is halved. Memory bandwidth stays the same.
    struct op gemm                   = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192}};
    struct op attention              = ATTENTION(1, 512, 2, 2, 64, .causal = false);
    struct op cast                   = {.kind = OP_CAST, .shape.elements = {.elements = 1000}};
    double    before[]               = {seconds_of(&gemm), seconds_of(&attention), seconds_of(&cast)};
    given.hardware.power_share.value = 0.3;
    expect_cost(&gemm, 2 * before[0]);
    expect_cost(&attention, 2 * before[1]);
    expect_cost(&cast, before[2]);
}

Test(op_cost, computes_the_cost_of_gemms_by_the_rate_of_their_wider_operand)
{
    // GEMMs run at 1e14 FLOP/s in fp32 and 1e15 in BF16. Attention over 512 keys reaches half of its rate, and its
    // backward pass moves six fp32 arrays.
    struct op op            = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    given.tensors[0].format = FORMAT_F32;
    given.tensors[2].format = FORMAT_E2M1;
    given.hardware.peak[RATE_FP32].value = 1e14;
    given.hardware.peak[RATE_FP4].value  = 4e15;
    const struct {
        int32_t a, b;
        double  steps, rate;
    } cases[] = {{0, 0, 256, 1e14}, {0, 1, 256, 1e14}, {1, 0, 256, 1e14}, {1, 2, 256, 1e15}, {2, 2, 500, 0.45 * 4e15}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        op.operand[GEMM_A] = cases[i].a;
        op.operand[GEMM_B] = cases[i].b;
        expect_cost(&op, (11 + 10.24) / 2 * 2 * 128 * 128 * (8192 + cases[i].steps) / (cases[i].rate / 100));
    }
    op           = (struct op){.kind            = OP_ATTENTION_BACKWARD,
                               .shape.attention = {.batch = 100, .sequence = 512, .heads = 2, .kv_heads = 2, .head_dim = 64}};
    double pairs = 100 * 512 * 512;
    expect_cost(&op, 10 * 2 * 64 * pairs / (0.5 * 0.475 * 0.8 * 1e14) + 24.0 * 100 * 512 * 2 * 64 / 1e12);
}

// An NVFP4 copy and its transpose of 1,000 x 500 BF16 elements: two reads, half a byte per element and 64 tiles of
// block scales for each copy, and a scale of the tensor for each copy.
Test(op_cost, computes_the_cost_of_copies_in_fp4_by_two_reads_and_packed_codes)
{
    struct op op            = {.kind           = OP_QUANTIZE,
                               .operand_count  = 9,
                               .operand        = {0, 1, 1, 2, 2, -1, -1, 3, 3, -1},
                               .access         = {1, 2, 2, 2, 2, 0, 0, 2, 2},
                               .shape.quantize = {.rows = 1000, .columns = 500, .scaling = SCALING_NV}};
    double    bytes         = 2 * 1e6 + 2 * 0.25e6 + 2 * 64 * 512 + 2 * 4;
    given.tensors[1].format = FORMAT_E2M1;
    given.tensors[2].format = FORMAT_E4M3;
    given.tensors[3].format = FORMAT_F32;
    cr_expect_float_eq(plan_op_bytes(&given.plan, &op), bytes, 0.1, "%.1f", plan_op_bytes(&given.plan, &op));
    given.hardware.cast_efficiency.value  = 0.5;
    given.hardware.scale_efficiency.value = 0.25;
    expect_cost(&op, (1e6 / 0.25 + (bytes - 1e6) / 0.5) / given.hardware.memory_bandwidth.value);
}

Test(op_cost, computes_the_cost_of_a_copy_in_fp8_by_how_its_scale_is_found)
{
    // With a known scale, quantizing reads the input once; with current scaling twice.
    struct op op            = {.kind           = OP_QUANTIZE,
                               .operand_count  = 7,
                               .operand        = {0, 1, 1, 2, -1, 2, 2},
                               .access         = {1, 2, 2, 2, 0, 1, 3},
                               .shape.quantize = {.rows = 1000, .columns = 500}};
    given.tensors[1].format = FORMAT_E4M3;
    given.tensors[2].format = FORMAT_F32;
    expect_cost(&op, (4 * 500000.0 + 16) / 1e12);
    op.operand[QUANTIZE_SCALE] = op.operand[QUANTIZE_AMAX] = -1;
    expect_cost(&op, (6 * 500000.0 + 4) / 1e12);

    // The kernel that finds the scale reads 2 bytes per element at half of the bandwidth. The kernel that casts moves 4
    // bytes at a quarter of it.
    given.hardware.scale_efficiency.value = 0.5;
    given.hardware.cast_efficiency.value  = 0.25;
    expect_cost(&op, (4 * 500000.0 + 4 * (4 * 500000.0 + 4)) / 1e12);

    // A norm with fused quantization reads its stored output again. If it stores none, it reads its input again.
    op = (struct op){.kind          = OP_NORM_FORWARD,
                     .operand_count = OP_FUSED + QUANTIZE_OUT + 1,
                     .shape.rows    = {.rows = 1000, .columns = 500}};
    memset(op.operand, 0xff, sizeof(op.operand));
    op.operand[NORM_IN] = op.operand[NORM_OUT] = 0;
    op.operand[OP_FUSED + QUANTIZE_OUT]        = 1;
    expect_cost(&op, (3 * 2 + 1) * 500000.0 / 1e12);
    op.operand[NORM_OUT] = -1;
    expect_cost(&op, (2 * 2 + 1) * 500000.0 / 1e12);
}

Test(op_cost, computes_the_cost_of_gemms_on_the_multiprocessors_that_they_do_not_leave)
{
    // 36 SMs are left to other kernels. 16 x 32 = 512 tiles of 128 x 256 on 64 of 100 SMs make 8 full waves.
    struct op op            = {.kind = OP_GEMM, .shape.gemm = {.m = 4096, .n = 4096, .k = 8192, .transpose_b = true}};
    given.machine.sm_margin = 36;
    expect_cost(&op, 8 * 2.0 * 128 * 256 * (8192 + 256) / 1e13);
}

Test(op_cost, computes_the_cost_of_a_thin_gemm_by_its_bytes)
{
    struct op op   = {.kind          = OP_GEMM,
                      .operand_count = 3,
                      .access        = {ACCESS_READ, ACCESS_READ, ACCESS_UPDATE},
                      .shape.gemm    = {.m = 1000, .n = 100000, .k = 1}};
    op.accumulates = true;
    expect_cost(&op, 2.0 * (1000 + 100000 + 2 * 1e8) / 1e12);
}

Test(op_cost, computes_the_cost_of_attention_by_its_length)
{
    // 1536 keys with a half length of 512 reach 3/4 of 596 TFLOP/s. Each pair and element takes 4 FLOPs.
    struct op op    = ATTENTION(100, 1024, 2, 2, 128, .earlier = 512, .causal = true);
    double    pairs = 100 * (1024.0 * 1025 / 2 + 1024 * 512);
    expect_cost(&op, 4 * 2 * 128 * pairs / (0.75 * 596e12));
    op.kind = OP_ATTENTION_BACKWARD;
    expect_cost(&op, 10 * 2 * 128 * pairs / (0.75 * 475e12) + 12.0 * 100 * 1024 * 2 * 128 / 1e12);
    op.kind = OP_ATTENTION_FORWARD;
    // The rate relative to heads of 128 is 0.8 with 64, 1.03 with 192 and 1.06 with 256.
    static const struct {
        int64_t head_dim;
        double  rate;
    } widths[] = {{32, 0.4}, {64, 0.8}, {96, 0.9}, {160, 1.015}, {192, 1.03}, {224, 1.045}, {512, 1.06}};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        int64_t head_dim            = widths[i].head_dim;
        op.shape.attention.head_dim = head_dim;
        expect_cost(&op, 4 * 2 * (double)head_dim * pairs / (0.75 * widths[i].rate * 596e12));
    }
}

// With few heads, the longest tile bounds the time: the last tile of 128 queries sees 1,024 keys and runs on one of 100
// SMs, so it takes the time of 100 such tiles on 100 SMs. Two heads have 1,049,600 visible pairs. With a window of 128,
// tiles see 256 keys, 2 x 2 x 122,944 pairs.
Test(op_cost, computes_the_cost_of_attention_of_few_heads_by_its_longest_tile)
{
    struct op op = ATTENTION(1, 1024, 2, 2, 128, .causal = true);
    expect_cost(&op, 4.0 * 128 * 100 * 128 * 1024 * 1.5 / 596e12);
    op.kind = OP_ATTENTION_BACKWARD;
    expect_cost(&op, 10.0 * 128 * 100 * 128 * 1024 * 1.5 / 475e12 + 12.0 * 1024 * 2 * 128 / 1e12);
    op.kind                   = OP_ATTENTION_FORWARD;
    op.shape.attention.window = 128;
    expect_cost(&op, 4.0 * 128 * 100 * 128 * 256 * 3 / 596e12);
    op.shape.attention.batch = 50;
    expect_cost(&op, 4.0 * 128 * 100 * 2 * 122944 * 3 / 596e12);
}

// Each tile of 128 queries meets 512 keys of a window of 384: half of the rate, and 4/3 of the visible pairs. A window
// of the length of the sequence has no effect.
Test(op_cost, computes_the_cost_of_attention_by_the_tiles_that_a_window_touches)
{
    struct op op    = ATTENTION(1, 8192, 2, 2, 128, .window = 384, .causal = true);
    double    pairs = 8192.0 * 384 - 384.0 * 383 / 2;
    expect_cost(&op, 4 * 2 * 128 * pairs * (512.0 / 384) / (0.5 * 596e12));
    op.shape.attention.sequence = op.shape.attention.window = 512;
    struct op all                                           = op;
    all.shape.attention.window                              = 0;
    expect_cost(&op, seconds_of(&all));
}

Test(op_cost, computes_the_cost_of_everything_else_by_the_bytes_it_moves)
{
    // An activation reads gate and up, and writes half of their size. An operand that is updated is read and written.
    struct op op = {.kind          = OP_ACTIVATION_FORWARD,
                    .operand_count = 2,
                    .access        = {ACCESS_READ, ACCESS_WRITE},
                    .shape.rows    = {.rows = 1000, .columns = 500, .variant = ACTIVATION_SWIGLU}};
    expect_cost(&op, 3.0 * 1000 * 500 * 2 / 1e12);
    op = (struct op){.kind           = OP_CAST,
                     .operand_count  = 2,
                     .access         = {ACCESS_READ, ACCESS_UPDATE},
                     .shape.elements = {.elements = ELEMENTS}};
    expect_cost(&op, 3.0 * ELEMENTS * 2 / 1e12);
    // Only rows of the embedding table that tokens select are read.
    op = (struct op){.kind          = OP_EMBEDDING_FORWARD,
                     .operand_count = 3,
                     .operand       = {-1, 0, 0},
                     .access        = {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                     .shape.rows    = {.rows = 10, .columns = 1000, .valid_columns = 32000}};
    expect_cost(&op, 2.0 * 10 * 1000 * 2 / 1e12);
}

// The head has 4,096 tokens, hidden size 1,024 and a vocabulary of 8,192.
static const struct op head_op = {.kind          = OP_GEMM,
                                  .operand_count = 3,
                                  .operand       = {0, 1, 2},
                                  .access        = {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                                  .tag           = {.part = PART_HEAD, .phase = PHASE_FORWARD, .microbatch = 1},
                                  .shape.gemm    = {.m = 4096, .n = 8192, .k = 1024}};

static void set_fp8_head(void)
{
    init_round();
    given.tensors[0].storage                   = STORAGE_ACTIVATION;
    given.tensors[1].storage                   = STORAGE_WEIGHT;
    given.tensors[2].storage                   = STORAGE_ACTIVATION;
    given.tensors[3].storage                   = STORAGE_GRADIENT;
    given.plan.precision.low_precision_linears = 1;
    given.plan.precision.recipe                = RECIPE_MXFP8;
    given.software.fp8_head                    = true;
    given.hardware.peak[RATE_FP8].value        = 2e15;
    given.hardware.memory_bandwidth.value      = 1e13;    // no GEMM is memory-bound
    given.hardware.gemm_efficiency_fp8.value   = 1.0;
}

TestSuite(cost_head, .init = set_fp8_head);

// Returns the bytes that the head moves in addition to a GEMM whose operands are already in FP8.
static double cast_bytes(const struct op *op)
{
    double all              = seconds_of(op);
    given.tensors[0].format = given.tensors[1].format = FORMAT_E4M3;
    given.software.fp8_head                           = false;
    double product                                    = seconds_of(op);
    given.tensors[0].format = given.tensors[1].format = FORMAT_BF16;
    given.software.fp8_head                           = true;
    return (all - product) * given.hardware.memory_efficiency.value * given.hardware.memory_bandwidth.value;
}

Test(cost_head, casts_its_input_for_each_microbatch_and_its_weight_for_the_first)
{
    struct op op = head_op;
    cr_expect_float_eq(cast_bytes(&op), 4.0 * 4096 * 1024, 1.0);
    op.tag.microbatch = 0;
    cr_expect_float_eq(cast_bytes(&op), 4.0 * (4096 + 8192) * 1024, 1.0);
    given.plan.precision.recipe = RECIPE_CURRENT;
    cr_expect_float_eq(cast_bytes(&op), 6.0 * (4096 + 8192) * 1024, 1.0);
}

Test(cost_head, casts_the_gradient_of_its_logits_once_for_both_products)
{
    struct op op  = head_op;
    op.tag.makes  = MAKES_INPUT_GRADIENT;
    op.tag.phase  = PHASE_BACKWARD;
    op.shape.gemm = (struct gemm_shape){.m = 4096, .n = 1024, .k = 8192};
    cr_expect_float_eq(cast_bytes(&op), 4.0 * 4096 * 8192, 1.0);
    op.tag.makes            = MAKES_WEIGHT_GRADIENT;
    op.operand[0]           = 2;
    op.operand[1]           = 0;
    op.operand[2]           = 3;
    op.shape.gemm           = (struct gemm_shape){.m = 8192, .n = 1024, .k = 4096};
    double low_precision    = seconds_of(&op);
    given.software.fp8_head = false;
    cr_expect_float_eq(seconds_of(&op) / low_precision, 1.8, 0.1);    // the weight is not cast again
}

// Other GEMMs do not change, and the head stays in BF16 if linears are in BF16.
Test(cost_head, is_in_bf16_where_blocks_are)
{
    struct op op                               = head_op;
    double    low_precision                    = seconds_of(&op);
    given.plan.precision.low_precision_linears = 0;
    double wide                                = seconds_of(&op);
    cr_expect_gt(wide, low_precision);
    given.plan.precision.low_precision_linears = 1;
    op.tag.part                                = PART_QKV;
    cr_expect_eq(seconds_of(&op), wide);
    op                      = (struct op){.kind = OP_CLEAR, .operand_count = 1, .tag.part = PART_HEAD};
    double clear            = seconds_of(&op);
    given.software.fp8_head = false;
    cr_expect_eq(seconds_of(&op), clear);
}
