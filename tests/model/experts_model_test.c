// SPDX-License-Identifier: MIT
// FLOPs and parameters of shared experts, and the rules for routers.
#include <criterion/criterion.h>

#include "gswbench/layers.h"

// Sizes of DeepSeek-V3, except for plain multi-head attention.
static const struct model_config wide = {.pattern           = "3 x dense, 58 x experts",
                                         .family            = "gswbench",
                                         .layers            = 61,
                                         .hidden            = 7168,
                                         .heads             = 128,
                                         .kv_heads          = 128,
                                         .head_dim          = 128,
                                         .rope_fraction     = 1,
                                         .ffn               = 18432,
                                         .expert_ffn        = 2048,
                                         .experts           = 256,
                                         .top_k             = 8,
                                         .router_score      = ROUTER_SIGMOID,
                                         .router_groups     = 8,
                                         .router_top_groups = 4,
                                         .vocab             = 129280};

// Same width as the routed experts: 58 x 3 x 7168 x 2048 weights, which every token uses.
Test(experts_model, counts_a_shared_expert_as_one_that_every_token_uses)
{
    const struct published_config none   = {.convention = FLOPS_PUBLISHED};
    struct model_config           shared = wide;
    shared.shared_ffn                    = 2048;
    cr_expect_eq(layers_parameters(&shared) - layers_parameters(&wide), 2554331136);
    cr_expect_eq(layers_active_parameters(&shared) - layers_active_parameters(&wide), 2554331136);
    cr_expect_float_eq(layers_flops(&shared, &none, FLOPS_FULL, 4096) - layers_flops(&wide, &none, FLOPS_FULL, 4096),
                       4096.0 * 6 * 2554331136.0, 1e3);
}

static void expect_error(const struct model_config *model, const char *text)
{
    status result = layers_check(model);
    cr_expect_str_eq(result.text, text);
}

Test(experts_model, says_what_is_wrong_with_groups_of_experts)
{
    struct model_config model = wide;
    expect_error(&model, "");
    model.router_groups = 0;
    expect_error(&model, "[model] router_top_groups = 4 needs router_groups");
    model.router_groups = 5;
    expect_error(&model, "[model] router_groups = 5 does not divide experts = 256");
    model.router_groups     = 128;
    model.router_top_groups = 3;
    expect_error(&model, "[model] router_top_groups = 3 of router_groups = 128 have fewer than top_k = 8 experts, with "
                         "2 per group: raise router_top_groups");
}
