// SPDX-License-Identifier: MIT
// Other frameworks have kernels that are slower than gswbench's, or need more of them. Compares their costs with
// published times and calculations by hand.
#include <criterion/criterion.h>

#include "round_machine.h"

// SimuMax measured the fused cross entropy of Transformer Engine on B200 at 0.2795 of 8,000 GiB/s, counting 8 bytes per
// logit in both passes together (configs/system/b200_bf16_ceperm.json, ce_fusion). That is 1.75 ms for 4,096 tokens and
// a vocabulary of 128,256.
Test(cost_kernels, loses_no_less_time_to_logits_than_its_kernels_compute)
{
    struct tensor tensors[]                = {{.format = FORMAT_BF16}, {.format = FORMAT_I32}, {.format = FORMAT_F32}};
    struct plan   plan                     = {.tensors = tensors};
    struct round *round                    = round_new();
    struct op     op                       = {.kind          = OP_CROSS_ENTROPY,
                                              .operand_count = 3,
                                              .operand       = {0, 1, 2},
                                              .access        = {ACCESS_UPDATE, ACCESS_READ, ACCESS_WRITE},
                                              .shape.rows    = {.rows = 4096, .columns = 128256, .parts = 1}};
    round->hardware.memory_bandwidth.value = 7.7e12;
    double memory                          = predict_cost_op(&round->machine, &plan, &op).seconds;
    cr_expect_lt(memory, 0.3e-3);
    round->software.loss_rate.value = 300e9;
    cr_expect_float_eq(predict_cost_op(&round->machine, &plan, &op).seconds, 1.751e-3, 1e-6);
    round->software.loss_bytes.value = 10.0;    // bound by memory
    expect_seconds(predict_cost_op(&round->machine, &plan, &op).seconds, 10.0 * memory);
    op.kind                          = OP_LOGIT_STATISTICS;    // loss_rate does not apply to it
    round->software.loss_bytes.value = 1.0;
    cr_expect_lt(predict_cost_op(&round->machine, &plan, &op).seconds, 1.75e-3);
}

// QK norm of 1,024 tokens in 8 + 2 heads of 64 as separate kernels. The forward pass moves 4 + 4 bytes per element; the
// backward pass 14 instead of 6.
Test(cost_kernels, normalises_heads_by_kernels_of_their_own)
{
    struct round *round       = round_new();
    struct op     op          = {.kind            = OP_ROPE_FORWARD,
                                 .shape.attention = {.batch = 1, .sequence = 1024, .heads = 8, .kv_heads = 2, .head_dim = 64}};
    round->plan.model.qk_norm = true;
    for (int pass = 0; pass < 2; pass++, op.kind = OP_ROPE_BACKWARD) {
        round->software.head_norms = false;
        double fused               = round_seconds(round, &op);
        round->software.head_norms = true;
        expect_cost(round, &op, fused + 5242880e-12);
        round->plan.model.qk_norm = false;
        expect_cost(round, &op, fused);
        round->plan.model.qk_norm = true;
    }
    op.kind                    = OP_ATTENTION_FORWARD;
    double attention           = round_seconds(round, &op);
    round->software.head_norms = false;
    expect_cost(round, &op, attention);
}

// DeepSeek-V3's router and dispatch preprocessing had 72 kernels, 31 after fusions, and 17 with DeepEP (Megatron-LM,
// docs/discussions/deepseek-v3-gb200-optimization). Each kernel adds a gap.
Test(cost_kernels, takes_a_gap_for_each_kernel_of_a_router)
{
    struct round *round              = round_new();
    struct op     op                 = {.kind = OP_ROUTE_FORWARD, .shape.routing = {.experts = 8, .owners = 2}};
    round->hardware.kernel_gap.value = 4e-6;
    double one                       = round_seconds(round, &op);
    round->software.router_kernels   = 31;
    expect_cost(round, &op, one + 120e-6);
    op.kind = OP_ROUTE_BACKWARD;
    cr_expect_lt(round_seconds(round, &op), 120e-6);
}
