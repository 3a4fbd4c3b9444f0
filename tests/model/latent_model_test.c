// SPDX-License-Identifier: MIT
// FLOPs and parameters of latent attention and MTP modules, and the rules for them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/layers.h"

// DeepSeek-V3 (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024) without MTP, and Moonlight (Moonshot AI, 2025), whose
// queries are not compressed.
static const struct model_config deepseek  = {.pattern          = "3 x dense, 58 x experts",
                                              .family           = "gswbench",
                                              .layers           = 61,
                                              .hidden           = 7168,
                                              .heads            = 128,
                                              .kv_heads         = 128,
                                              .head_dim         = 128,
                                              .q_rank           = 1536,
                                              .kv_rank          = 512,
                                              .rope_dim         = 64,
                                              .value_dim        = 128,
                                              .rope_fraction    = 1,
                                              .ffn              = 18432,
                                              .expert_ffn       = 2048,
                                              .shared_ffn       = 2048,
                                              .experts          = 256,
                                              .top_k            = 8,
                                              .router_score     = ROUTER_SIGMOID,
                                              .router_normalise = 1,
                                              .vocab            = 129280,
                                              .vocab_multiple   = 1};
static const struct model_config moonlight = {.pattern          = "dense, 26 x experts",
                                              .family           = "gswbench",
                                              .layers           = 27,
                                              .hidden           = 2048,
                                              .heads            = 16,
                                              .kv_heads         = 16,
                                              .head_dim         = 128,
                                              .kv_rank          = 512,
                                              .rope_dim         = 64,
                                              .value_dim        = 128,
                                              .rope_fraction    = 1,
                                              .ffn              = 11264,
                                              .expert_ffn       = 1408,
                                              .shared_ffn       = 2816,
                                              .experts          = 64,
                                              .top_k            = 6,
                                              .router_score     = ROUTER_SIGMOID,
                                              .router_normalise = 1,
                                              .vocab            = 163840,
                                              .vocab_multiple   = 1};

Test(latent_model, counts_what_is_compressed_and_what_is_made_of_it)
{
    int64_t queries = 7168 * 1536 + 1536 + 1536 * 128 * (128 + 64);
    int64_t keys    = 7168 * (512 + 64) + 512 + 512 * 128 * (128 + 128);
    int64_t layer   = queries + keys + 128 * 128 * 7168 + 2 * 7168;
    int64_t dense   = 3 * (3 * 7168LL * 18432);
    int64_t router = 7168 * 256, expert = 3 * 7168 * 2048;
    int64_t ends = 2 * 129280LL * 7168 + 7168;
    cr_expect_eq(layers_parameters(&deepseek), 61 * layer + dense + 58 * (router + 257LL * expert) + ends);
    cr_expect_eq(layers_parameters(&deepseek), 671026404352);
    cr_expect_eq(layers_active_parameters(&deepseek), 37552282624);
}

Test(latent_model, counts_queries_that_are_not_compressed)
{
    int64_t layer =
        2048 * 16 * (128 + 64) + 2048 * (512 + 64) + 512 + 512 * 16 * (128 + 128) + 16 * 128 * 2048 + 2 * 2048;
    int64_t expert = 3 * 2048 * 1408, ends = 2 * 163840LL * 2048 + 2048;
    cr_expect_eq(layers_parameters(&moonlight),
                 27 * layer + 3 * 2048LL * 11264 + 26 * (2048 * 64 + 66LL * expert) + ends);
    cr_expect_eq(layers_parameters(&moonlight), 15960108544);
}

// Every head width is different, and values are wider than the non-rotary part of keys.
Test(latent_model, counts_weights_by_the_width_that_each_reads)
{
    struct model_config model = deepseek;
    model.head_dim            = 96;
    model.value_dim           = 160;
    int64_t keys              = (128 - 96) * 128LL * (1536 + 512);    // of queries and keys
    int64_t values            = (160 - 128) * 128LL * (512 + 7168);
    cr_expect_eq(layers_parameters(&model) - layers_parameters(&deepseek), 61 * (values - keys));
    cr_expect_eq(layers_active_parameters(&model) - layers_active_parameters(&deepseek), 61 * (values - keys));
}

// Scores with head width 192, values with 128, for each pair of positions: forward once, backward twice.
Test(latent_model, counts_scores_and_values_by_their_own_widths)
{
    const struct published_config none   = {.convention = FLOPS_PUBLISHED};
    struct model_config           narrow = deepseek;
    narrow.rope_dim                      = 32;
    double attended = 61.0 * 128 * 32 * 2 * 3 * 4096 * 4096;    // 32 elements less in each score GEMM
    double weights  = 61.0 * (1536 * 128 * 32 + 7168 * 32) * 6 * 4096;
    cr_expect_float_eq(layers_flops(&deepseek, &none, FLOPS_FULL, 4096) -
                           layers_flops(&narrow, &none, FLOPS_FULL, 4096),
                       attended + weights, 1e6);
}

static void expect_error(const struct model_config *model, const char *text)
{
    status result = layers_check(model);
    cr_expect_str_eq(result.text, text);
}

Test(latent_model, says_what_is_wrong)
{
    struct model_config model = deepseek;
    expect_error(&model, "");
    model.qk_norm = 1;
    expect_error(&model, "[model] qk_norm = yes: latent attention does not support it: set qk_norm = no");
    model         = deepseek;
    model.kv_rank = model.q_rank = model.value_dim = 0;
    expect_error(&model, "[model] rope_dim = 64 applies to latent attention only: set kv_rank, or leave it out");
    model = deepseek;
    snprintf(model.pattern, sizeof(model.pattern), "attention + mlp");
    model.experts = model.top_k = model.expert_ffn = model.shared_ffn = 0;
    model.router_score                                                = ROUTER_SOFTMAX;
    expect_error(&model, "[model] pattern = attention + mlp mixes attention and latent attention, which this version "
                         "does not support: remove attention from pattern, or kv_rank");
}

static struct model_config predicting(int64_t tokens)
{
    struct model_config model = deepseek;
    model.predicted_tokens    = tokens;
    snprintf(model.pattern, sizeof(model.pattern), "3 x dense, experts");
    return model;
}

// README_WEIGHTS of DeepSeek-V3 says 671 B parameters, and 11.5 B for the MTP module without the shared embedding and
// head. That number excludes the projection's 103 M.
Test(latent_model, counts_what_deepseek_v3_publishes)
{
    struct model_config one = deepseek, two = predicting(1);
    int64_t layer  = 7168 * 1536 + 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 + 512 * 128 * 256 + 128 * 128 * 7168;
    int64_t expert = 3 * 7168 * 2048, projection = 2 * 7168 * 7168;
    int64_t unique = layer + 2 * 7168 + 7168 * 256 + 257LL * expert + projection + 3 * 7168;
    cr_expect_eq(layers_parameters(&one), 671026404352);
    cr_expect_eq(layers_parameters(&two), 671026404352 + unique);
    cr_expect_eq(unique, 11610067968);
    cr_expect_eq(layers_active_parameters(&two) - layers_active_parameters(&one), unique - 248LL * expert);
}

// MTP adds its matrices and the head's. Megatron-Bridge's published figures imply 250 GFLOP per token without and 260
// with it (25.11: 961 TFLOP/s at 3848 tokens/s; 26.04: 1290 at 4965).
Test(latent_model, counts_flops_as_published)
{
    struct model_config     one = deepseek, two = predicting(1);
    struct published_config published = {.convention = FLOPS_CAUSAL};
    double                  without   = layers_flops(&one, &published, FLOPS_CAUSAL, 4096) / 4096;
    double                  with      = layers_flops(&two, &published, FLOPS_CAUSAL, 4096) / 4096;
    cr_expect_float_eq(without / 961e12 * 3848, 1.0, 2e-3, "%g", without);
    cr_expect_float_eq(with / 1290e12 * 4965, 1.0, 2e-3, "%g", with);
}

Test(latent_model, has_the_last_layers_experts_once_more)
{
    struct model_config model = predicting(2);
    cr_expect_eq(layers_with_experts(&model), 60);
    cr_expect_eq(layers_expert_layer(&model, 57), 60);
    cr_expect_eq(layers_expert_layer(&model, 58), 61);
    cr_expect_eq(layers_expert_layer(&model, 59), 62);
}

Test(latent_model, is_of_no_family_that_predicts_one_token)
{
    struct model_config model = predicting(1);
    status              error = layers_check(&model);
    cr_expect_not(failed(&error), "%s", error.text);
    strcpy(model.family, "qwen3_moe");
    error = layers_check(&model);
    cr_expect_not_null(
        strstr(error.text,
               "[model] family = qwen3_moe supports no MTP modules (predicted_tokens): use family = gswbench"),
        "%s", error.text);
}
