// SPDX-License-Identifier: MIT
// Window attention, sinks and biases: FLOPs, parameters, and the rules for them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/layers.h"

static const struct model_config mixed = {.pattern          = "dense, 2 x experts",
                                          .family           = "gswbench",
                                          .layers           = 3,
                                          .hidden           = 4,
                                          .heads            = 2,
                                          .kv_heads         = 1,
                                          .head_dim         = 2,
                                          .ffn              = 6,
                                          .vocab            = 10,
                                          .experts          = 3,
                                          .expert_ffn       = 5,
                                          .top_k            = 2,
                                          .embedding_scale  = 1,
                                          .logit_scale      = 1,
                                          .rope_fraction    = 1,
                                          .router_normalise = 1,
                                          .router_scale     = 1};

static void expect_error(const struct model_config *model, const char *text)
{
    status result = layers_check(model);
    cr_expect_str_eq(result.text, text);
    cr_expect_eq(result.exit_code, EXIT_CONFIG);
}

static void expect_pattern_error(const char *pattern, const char *text)
{
    struct model_config model = mixed;
    snprintf(model.pattern, sizeof(model.pattern), "%s", pattern);
    expect_error(&model, text);
}

// The pattern of GPT-OSS's 36 layers, as a repeated group.
Test(windows_model, counts_what_windows_show)
{
    const struct published_config none  = {.convention = FLOPS_PUBLISHED};
    struct model_config           model = mixed;
    model.layers                        = 4;
    model.window                        = 3;
    snprintf(model.pattern, sizeof(model.pattern), "2 x (window_attention + experts, dense)");
    cr_expect_eq(layers_with_experts(&model), 2);
    cr_expect_eq(layers_expert_layer(&model, 1), 2);
    snprintf(model.pattern, sizeof(model.pattern), "(window_attention + experts, dense)");
    cr_expect_eq(layers_with_experts(&model), 2, "a group is all that remains");
    model.layers = 3;
    cr_expect_eq(layers_with_experts(&model), 2, "and ends with the layers");
    model.layers = 4;
    // The first two of 8 queries see one and two keys, the others three: 21 pairs.
    double multiplied = 8.0 * 6 * (4 * 48 + 2 * 72 + 2 * 120 + 40);
    cr_expect_float_eq(layers_flops(&model, &none, FLOPS_FULL, 8), multiplied + 2 * 12 * 4 * (64 + 21), 1e-6);
    cr_expect_float_eq(layers_flops(&model, &none, FLOPS_CAUSAL, 8), multiplied + 2 * 12 * 4 * (32 + 21), 1e-6);
    model.window = 100;
    cr_expect_float_eq(layers_flops(&model, &none, FLOPS_CAUSAL, 8), multiplied + 4 * 12 * 4 * 32, 1e-6);
}

Test(windows_model, counts_biases_and_sinks)
{
    struct model_config model  = mixed;
    int64_t             before = layers_parameters(&model), active = layers_active_parameters(&model);
    int64_t             heads = model_query_width(&model) + 2 * model_kv_width(&model);
    model.attention_bias = model.mlp_bias = model.attention_sinks = model.router_offset = 1;
    int64_t all    = 3 * (heads + model.hidden + model.heads) + 2 * model.ffn + model.hidden;
    int64_t expert = 2 * model_expert_ffn(&model) + model.hidden;
    cr_expect_eq(layers_parameters(&model), before + all + 2 * (model.experts * expert + model.experts));
    cr_expect_eq(layers_active_parameters(&model), active + all + 2 * (model.top_k * expert + model.experts));
}

Test(windows_model, says_what_is_wrong_with_windows_sinks_and_biases)
{
    struct model_config model = mixed;
    memcpy(model.family, "mixtral", sizeof("mixtral"));
    model.pattern[0]      = '\0';
    model.attention_sinks = 1;
    expect_error(&model, "[model] family = mixtral supports no windows, sinks or biases (window, attention_sinks, "
                         "attention_bias, mlp_bias, router_offset): use family = gswbench");
    expect_pattern_error("2 x (dense, experts",
                         "[model] pattern = 2 x (dense, experts: \"\" is not a layer: use dense, experts, or kinds "
                         "joined by + (attention, window_attention, latent, mlp, experts), each with a count, e.g. 3 x "
                         "dense, 58 x experts or 2 x (dense, experts)");
    expect_pattern_error("window_attention + mlp, 2 x experts",
                         "[model] pattern = window_attention + mlp, 2 x experts has window_attention, which needs a "
                         "window: set window to a number of positions");
    expect_pattern_error("window_attention + attention, 2 x experts",
                         "[model] pattern = window_attention + attention, 2 x experts: a layer has window_attention or "
                         "attention, not both");
    model        = mixed;
    model.window = 3;
    expect_error(&model, "[model] window = 3, but pattern = dense, 2 x experts has no window_attention: add it to "
                         "pattern, or leave window out");
}
