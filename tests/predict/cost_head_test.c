// SPDX-License-Identifier: MIT
// Tests the costs of an FP8 head: the rate of its GEMMs, and the bytes of casts.
#include <criterion/criterion.h>

#include "gswbench/op_operands.h"
#include "round_machine.h"

// The head has 4,096 tokens, hidden size 1,024 and a vocabulary of 8,192.
static const struct op head_op = {.kind          = OP_GEMM,
                                  .operand_count = 3,
                                  .operand       = {0, 1, 2},
                                  .access        = {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                                  .tag           = {.part = PART_HEAD, .phase = PHASE_FORWARD, .microbatch = 1},
                                  .shape.gemm    = {.m = 4096, .n = 8192, .k = 1024}};

static struct round *fp8_head(void)
{
    struct round *round                         = round_new();
    round->tensors[0].storage                   = STORAGE_ACTIVATION;
    round->tensors[1].storage                   = STORAGE_WEIGHT;
    round->tensors[2].storage                   = STORAGE_ACTIVATION;
    round->tensors[3].storage                   = STORAGE_GRADIENT;
    round->plan.precision.low_precision_linears = 1;
    round->plan.precision.recipe                = RECIPE_MXFP8;
    round->software.fp8_head                    = true;
    round->hardware.peak[RATE_FP8].value        = 2e15;
    round->hardware.memory_bandwidth.value      = 1e13;    // no GEMM is memory-bound
    round->hardware.gemm_efficiency_fp8.value   = 1.0;
    return round;
}

// Returns the bytes that the head moves in addition to a GEMM whose operands are already in FP8.
static double cast_bytes(struct round *round, const struct op *op)
{
    double all               = round_seconds(round, op);
    round->tensors[0].format = round->tensors[1].format = FORMAT_E4M3;
    round->software.fp8_head                            = false;
    double product                                      = round_seconds(round, op);
    round->tensors[0].format = round->tensors[1].format = FORMAT_BF16;
    round->software.fp8_head                            = true;
    return (all - product) * round->hardware.memory_efficiency.value * round->hardware.memory_bandwidth.value;
}

Test(cost_head, casts_its_input_for_each_microbatch_and_its_weight_for_the_first)
{
    struct round *round = fp8_head();
    struct op     op    = head_op;
    cr_expect_float_eq(cast_bytes(round, &op), 4.0 * 4096 * 1024, 1.0);
    op.tag.microbatch = 0;
    cr_expect_float_eq(cast_bytes(round, &op), 4.0 * (4096 + 8192) * 1024, 1.0);
    round->plan.precision.recipe = RECIPE_CURRENT;
    cr_expect_float_eq(cast_bytes(round, &op), 6.0 * (4096 + 8192) * 1024, 1.0);
}

Test(cost_head, casts_the_gradient_of_its_logits_once_for_both_products)
{
    struct round *round = fp8_head();
    struct op     op    = head_op;
    op.tag.makes        = MAKES_INPUT_GRADIENT;
    op.tag.phase        = PHASE_BACKWARD;
    op.shape.gemm       = (struct gemm_shape){.m = 4096, .n = 1024, .k = 8192};
    cr_expect_float_eq(cast_bytes(round, &op), 4.0 * 4096 * 8192, 1.0);
    op.tag.makes             = MAKES_WEIGHT_GRADIENT;
    op.operand[0]            = 2;
    op.operand[1]            = 0;
    op.operand[2]            = 3;
    op.shape.gemm            = (struct gemm_shape){.m = 8192, .n = 1024, .k = 4096};
    double low_precision     = round_seconds(round, &op);
    round->software.fp8_head = false;
    cr_expect_float_eq(round_seconds(round, &op) / low_precision, 1.8, 0.1);    // the weight is not cast again
}

// Other GEMMs do not change, and the head stays in BF16 if linears are in BF16.
Test(cost_head, is_in_bf16_where_blocks_are)
{
    struct round *round                         = fp8_head();
    struct op     op                            = head_op;
    double        low_precision                 = round_seconds(round, &op);
    round->plan.precision.low_precision_linears = 0;
    double wide                                 = round_seconds(round, &op);
    cr_expect_gt(wide, low_precision);
    round->plan.precision.low_precision_linears = 1;
    op.tag.part                                 = PART_QKV;
    cr_expect_eq(round_seconds(round, &op), wide);
    op                       = (struct op){.kind = OP_CLEAR, .operand_count = 1, .tag.part = PART_HEAD};
    double clear             = round_seconds(round, &op);
    round->software.fp8_head = false;
    cr_expect_eq(round_seconds(round, &op), clear);
}
