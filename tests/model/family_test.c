// SPDX-License-Identifier: MIT
// Model families: their components, and the models that each accepts.
#include "gswbench/plan_build.h"

#include <criterion/criterion.h>
#include <string.h>

// clang-format off
static const struct model_config llama3_8b = {
    .family = "llama", .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ffn = 14336,
    .vocab = 128256, .vocab_multiple = 128, .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, .router_normalise = 1, .router_scale = 1};
static const struct model_config qwen3_30b = {
    .family = "qwen3_moe", .layers = 48, .hidden = 2048, .heads = 32, .kv_heads = 4, .head_dim = 128, .ffn = 6144,
    .vocab = 151936, .vocab_multiple = 1, .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, .qk_norm = 1, .experts = 128, .expert_ffn = 768, .top_k = 8, .router_normalise = 1, .router_scale = 1};
// clang-format on

static void expect_error(const struct model_config *model, const char *text)
{
    status result = layers_check(model);
    cr_expect_str_eq(result.text, text);
    cr_expect_eq(result.exit_code, EXIT_CONFIG);
}

// Each layer has 2 x 128 parameters of QK norms.
Test(family, counts_the_parameters_of_a_published_qwen3)
{
    status result = layers_check(&qwen3_30b);
    cr_expect(!failed(&result), "%s", result.text);
    cr_expect_eq(layers_parameters(&qwen3_30b), INT64_C(30532122624));
    cr_expect_eq(layers_active_parameters(&qwen3_30b), INT64_C(3353032704));
}

Test(family, is_refused_where_it_does_not_fit_the_block)
{
    struct model_config model = llama3_8b;
    strcpy(model.family, "gpt");
    expect_error(&model, "[model] family = gpt: expected llama, mixtral, qwen3, qwen3_moe, deepseek_v3 or gswbench");

    strcpy(model.family, "mixtral");
    expect_error(&model, "[model] family = mixtral needs experts: use family = llama");

    model.experts = model.top_k = 2;
    strcpy(model.family, "llama");
    expect_error(&model, "[model] family = llama has no experts: use family = mixtral");

    model.qk_norm = 1;
    expect_error(&model, "[model] family = llama has no experts: use family = qwen3_moe");

    strcpy(model.family, "mixtral");
    expect_error(&model, "[model] family = mixtral has no qk_norm: use family = qwen3_moe");

    model.qk_norm = 0;
    strcpy(model.family, "qwen3_moe");
    expect_error(&model, "[model] family = qwen3_moe needs qk_norm = yes: use family = mixtral");

    model.experts = model.top_k = 0;
    expect_error(&model, "[model] family = qwen3_moe needs experts: use family = llama");

    model = llama3_8b;
    strcpy(model.family, "deepseek_v3");
    status result = layers_check(&model);
    cr_expect_not_null(strstr(
        result.text,
        "[model] family = deepseek_v3 needs latent attention (kv_rank); family = gswbench supports every shape"));

    model             = llama3_8b;
    model.logit_scale = 0.5;
    expect_error(&model, "[model] family = llama supports no scaled embeddings or logits (embedding_scale, "
                         "logit_scale): use family = gswbench");
}
