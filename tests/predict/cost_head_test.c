// SPDX-License-Identifier: MIT
// FP8 head: rate of its GEMMs, and bytes of the casts.
#include <criterion/criterion.h>

#include "gswbench/op_operands.h"
#include "round_machine.h"

// 4,096 tokens, hidden 1,024, vocabulary 8,192.
struct head {
    struct tensor          tensors[4];
    struct plan            plan;
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
    struct op              op;
};

static void init(struct head *head)
{
    *head = (struct head){.tensors  = {{.format = FORMAT_BF16, .storage = STORAGE_ACTIVATION},
                                       {.format = FORMAT_BF16, .storage = STORAGE_WEIGHT},
                                       {.format = FORMAT_BF16, .storage = STORAGE_ACTIVATION},
                                       {.format = FORMAT_BF16, .storage = STORAGE_GRADIENT}},
                          .hardware = round_machine(),
                          .op       = {.kind          = OP_GEMM,
                                       .operand_count = 3,
                                       .operand       = {0, 1, 2},
                                       .access        = {ACCESS_READ, ACCESS_READ, ACCESS_WRITE},
                                       .tag           = {.part = PART_HEAD, .phase = PHASE_FORWARD, .microbatch = 1},
                                       .shape.gemm    = {.m = 4096, .n = 8192, .k = 1024}}};
    option_set_defaults(software_options, &head->software);
    head->plan    = (struct plan){.tensors = head->tensors};
    head->machine = (struct machine){.hardware = &head->hardware, .software = &head->software};
    head->plan.precision.low_precision_linears = 1;
    head->plan.precision.recipe                = RECIPE_MXFP8;
    head->software.fp8_head                    = true;
    head->hardware.peak[RATE_FP8].value        = 2e15;
    head->hardware.memory_bandwidth.value      = 1e13;    // no GEMM is memory-bound
    head->hardware.gemm_efficiency_fp8.value   = 1.0;
}

static double seconds_of(const struct head *head)
{
    return predict_cost_op(&head->machine, &head->plan, &head->op).seconds;
}

// Memory bytes in addition to a GEMM whose operands are already FP8.
static double cast_bytes(struct head *head)
{
    double all              = seconds_of(head);
    head->tensors[0].format = head->tensors[1].format = FORMAT_E4M3;
    head->software.fp8_head                           = false;
    double product                                    = seconds_of(head);
    head->tensors[0].format = head->tensors[1].format = FORMAT_BF16;
    head->software.fp8_head                           = true;
    return (all - product) * head->hardware.memory_efficiency.value * head->hardware.memory_bandwidth.value;
}

Test(cost_head, casts_its_input_for_each_microbatch_and_its_weight_for_the_first)
{
    struct head head;
    init(&head);
    cr_expect_float_eq(cast_bytes(&head), 4.0 * 4096 * 1024, 1.0);
    head.op.tag.microbatch = 0;
    cr_expect_float_eq(cast_bytes(&head), 4.0 * (4096 + 8192) * 1024, 1.0);
    head.plan.precision.recipe = RECIPE_CURRENT;
    cr_expect_float_eq(cast_bytes(&head), 6.0 * (4096 + 8192) * 1024, 1.0);
}

Test(cost_head, casts_the_gradient_of_its_logits_once_for_both_products)
{
    struct head head;
    init(&head);
    head.op.tag.makes  = MAKES_INPUT_GRADIENT;
    head.op.tag.phase  = PHASE_BACKWARD;
    head.op.shape.gemm = (struct gemm_shape){.m = 4096, .n = 1024, .k = 8192};
    cr_expect_float_eq(cast_bytes(&head), 4.0 * 4096 * 8192, 1.0);
    head.op.tag.makes      = MAKES_WEIGHT_GRADIENT;
    head.op.operand[0]     = 2;
    head.op.operand[1]     = 0;
    head.op.operand[2]     = 3;
    head.op.shape.gemm     = (struct gemm_shape){.m = 8192, .n = 1024, .k = 4096};
    double low_precision   = seconds_of(&head);
    head.software.fp8_head = false;
    cr_expect_float_eq(seconds_of(&head) / low_precision, 1.8, 0.1);    // no second cast
}

// Other GEMMs are unaffected, and so is the head without FP8 linears.
Test(cost_head, is_in_bf16_where_blocks_are)
{
    struct head head;
    init(&head);
    double low_precision                      = seconds_of(&head);
    head.plan.precision.low_precision_linears = 0;
    double wide                               = seconds_of(&head);
    cr_expect_gt(wide, low_precision);
    head.plan.precision.low_precision_linears = 1;
    head.op.tag.part                          = PART_QKV;
    cr_expect_eq(seconds_of(&head), wide);
    head.op                = (struct op){.kind = OP_CLEAR, .operand_count = 1, .tag.part = PART_HEAD};
    double clear           = seconds_of(&head);
    head.software.fp8_head = false;
    cr_expect_eq(seconds_of(&head), clear);
}
