// SPDX-License-Identifier: MIT
// Sums over a plan against closed forms.
#include <criterion/criterion.h>

#include "tiny.h"

Test(account, counts_the_parameters_of_the_model)
{
    struct tiny    tiny;
    struct account account;
    tiny_init(&tiny);
    tiny_plan(&tiny);

    plan_account(&tiny.plan, &account);

    // Embedding and head 40 x 16; a layer: norms 2 x 16, qkv 32 x 16, projection 16 x 16, gate and up 48 x 16, down
    // 16 x 24; final norm 16.
    cr_assert_eq(account.parameters, 2 * 640 + 2 * (32 + 512 + 256 + 768 + 384) + 16);
    cr_assert_eq(account.parameters, model_parameters(&tiny.model));
    plan_free(&tiny.plan);
}

Test(account, counts_two_flops_a_multiply_add_and_the_causal_half_of_attention)
{
    struct tiny    tiny;
    struct account account;
    tiny_init(&tiny);
    tiny_plan(&tiny);

    plan_account(&tiny.plan, &account);

    // 16 tokens; the products of a layer have 512 + 256 + 768 + 384 weights, the head 640.
    double products = 2.0 * 16 * (2 * 1920 + 640);
    // Two sequences, four heads: 8 x 9 / 2 pairs of positions, two products of head_dim 4 each.
    double attention = 2.0 * 2 * 4 * 36 * 2 * 2 * 4;
    cr_assert_float_eq(account.flops[PHASE_FORWARD], products + attention, 1e-6 * products);
    cr_assert_float_eq(account.flops[PHASE_BACKWARD], 2 * products + 2.5 * attention, 1e-6 * products);
    cr_assert_eq(account.flops[PHASE_RECOMPUTE], 0);
    cr_assert_float_eq(account.hardware_flops, (3 * products + 3.5 * attention) / 2, 1e-6 * products);
    plan_free(&tiny.plan);
}

Test(account, sums_equal_transfers)
{
    struct tiny    tiny;
    struct account account;
    tiny_init(&tiny);
    tiny.parallel.dp = 4;
    tiny_plan(&tiny);

    plan_account(&tiny.plan, &account);

    // Embedding, head with the final norm, two equal blocks, and the loss.
    int64_t count = 0;
    for (int32_t i = 0; i < account.transfer_count; i++) {
        count += account.transfers[i].count;
        cr_assert_eq(account.transfers[i].kind, OP_ALL_REDUCE);
        cr_assert_eq(account.transfers[i].axes, 1u << AXIS_DP);
        cr_assert_eq(account.transfers[i].group_size, 4);
    }
    cr_assert_eq(count, 5);
    cr_assert_eq(account.transfer_count, 4);
    plan_free(&tiny.plan);
}
