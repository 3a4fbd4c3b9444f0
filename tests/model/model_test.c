// SPDX-License-Identifier: MIT
// Tests the shapes, rules and families of models, and compares parameter and FLOP counts with published numbers.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "line.h"
#include "models.h"
#include "success.h"

Test(model, counts_the_parameters_that_were_published)
{
    const struct {
        const struct model_config *model;
        int64_t                    layers;
        int                        decimals;
        const char                *billions;
    } cases[] = {
        {&llama2_70b, 80, 3, "68.977"},
        {&grok1, 64, 1, "316.5"},
        {&grok1, 2, 1, "11.4"},
        {&grok1, 4, 1, "21.3"},
        {&grok1, 8, 1, "40.9"},
        {&grok1, 16, 1, "80.3"},
        {&grok1, 32, 1, "159.0"},
        {&nemotron4, 96, 2, "341.03"},
        {&llama3_8b, 32, 3, "8.030"},
        {&llama3_70b, 80, 3, "70.554"},
        {&llama3_405b, 126, 3, "405.853"},
        {&llama3_405b, 8, 1, "29.7"},
        {&llama3_405b, 30, 1, "99.8"},
        {&llama3_405b, 62, 1, "201.8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_config model    = with(cases[i].model, line_of("layers %d", (int)cases[i].layers));
        const char         *billions = line_of("%.*f", cases[i].decimals, (double)layers_parameters(&model) / 1e9);
        cr_expect_str_eq(billions, cases[i].billions, "case %zu: %s, not %s", i, billions, cases[i].billions);
    }
}

Test(model, counts_the_parameters_that_torchtitan_prints)
{
    cr_expect_eq(layers_parameters(&llama3_8b), 8030261248);
    cr_expect_eq(layers_parameters(&llama3_70b), 70553706496);
}

// Megatron-Bridge omits the weight gradients of frozen matrices, a third of their FLOPs, and counts all of attention:
// 2.779359236587520e15 for 8192 tokens of Llama 2 70B. MLPerf's LoRA adapters have 44,564,480 parameters and add 6
// FLOPs per parameter and token.
Test(model, counts_no_weight_gradients_of_frozen_matrices)
{
    struct model_config     model     = with(&llama2_70b, "rank 16; alpha 32; targets qkv, projection");
    struct published_config published = {.count_embedding = 1};
    const int64_t           sequence  = 8192;

    cr_expect_eq(layers_trained_parameters(&model), 44564480);
    cr_expect_eq(layers_parameters(&model), layers_parameters(&llama2_70b) + 44564480);
    cr_expect_eq(layers_flops(&model, &published, FLOPS_FULL, sequence), 2779359236587520.0 + 6.0 * 8192 * 44564480);
}

Test(model, counts_the_experts_that_a_token_uses)
{
    cr_expect_eq(layers_active_parameters(&grok1), 84526503936);
    cr_expect_eq(layers_active_parameters(&llama3_8b), 8030261248);
}

Test(model, counts_each_layer_of_a_mixed_model_by_what_it_is)
{
    // Parameters: embedding and head 40 each, final norm 4; per layer attention 48 and norms 8; MLP 72; experts 60
    // each, router 12.
    cr_expect_eq(layers_parameters(&mixed), 40 + 40 + 4 + 3 * (48 + 8) + 72 + 2 * (3 * 60 + 12));
    cr_expect_eq(layers_active_parameters(&mixed), 40 + 40 + 4 + 3 * (48 + 8) + 72 + 2 * (2 * 60 + 12));
    cr_expect_eq(layers_parameters(&wide_experts), 685714011136);
    cr_expect_eq(layers_active_parameters(&wide_experts), 52239889408);
}

Test(model, counts_the_flops_of_each_layer_of_a_mixed_model)
{
    // Weights: 8 tokens x 6 FLOPs x (attention 3 x 48, MLP 72, 2 experts of 60 in 2 layers, head 40). Attention scores
    // and values: 3 layers x 12 x hidden size 4 x 8 x 8 positions.
    cr_expect_float_eq(flops_of(&mixed, FLOPS_FULL, 8), 8.0 * 6 * (144 + 72 + 240 + 40) + 9216, 1e-6);
    cr_expect_float_eq(flops_of(&mixed, FLOPS_CAUSAL, 8), 8.0 * 6 * (144 + 72 + 240 + 40) + 4608, 1e-6);
}

Test(model, says_which_layers_have_experts)
{
    struct model_config model = mixed;
    cr_expect_eq(layers_with_experts(&model), 2);
    cr_expect_eq(layers_expert_layer(&model, 0), 1);
    cr_expect_eq(layers_expert_layer(&model, 1), 2);
    snprintf(model.pattern, sizeof(model.pattern), "experts, attention + mlp, attention+experts");
    cr_expect_eq(layers_expert_layer(&model, 1), 2);
    snprintf(model.pattern, sizeof(model.pattern), "2 x dense, experts");
    cr_expect_eq(layers_with_experts(&model), 1);
    model.layers = 9;
    cr_expect_eq(layers_with_experts(&model), 7, "the last run is what remains");
    model.pattern[0] = '\0';
    cr_expect_eq(layers_with_experts(&model), 9);
    model.experts = 0;
    cr_expect_eq(layers_with_experts(&model), 0);
}

Test(model, counts_a_tied_table_once_and_the_biases_of_layer_norms)
{
    struct model_config tiny = {
        .layers = 1, .hidden = 4, .heads = 2, .kv_heads = 1, .head_dim = 2, .ffn = 6, .vocab = 10};
    // Parameters: embedding 40, q 16, k 8, v 8, o 16, gate and up 48, down 24, three norms 12; head 40.
    cr_expect_eq(layers_parameters(&tiny), 212);
    tiny.tied = 1;
    cr_expect_eq(layers_parameters(&tiny), 172);
    tiny.norm = NORM_LAYER;
    cr_expect_eq(layers_parameters(&tiny), 184);
    tiny.activation = ACTIVATION_GELU;
    cr_expect_eq(layers_parameters(&tiny), 160);
}

Test(model, counts_the_flops_of_every_convention)
{
    const struct {
        const struct model_config *model;
        int64_t                    layers, sequence;
        enum flop_convention       convention;
        int                        digits;
        const char                *flops;
    } cases[] = {
        {&llama2_70b, 80, 4096, FLOPS_FULL, 7, "1.820637e+15"},
        {&llama2_70b, 80, 4096, FLOPS_CAUSAL, 5, "1.7547e+15"},
        {&grok1, 64, 8192, FLOPS_CAUSAL, 6, "4.27405e+15"},
        {&grok1, 64, 8192, FLOPS_FULL, 5, "4.4324e+15"},
        {&grok1, 2, 4096, FLOPS_CAUSAL, 5, "8.4306e+13"},
        {&grok1, 4, 4096, FLOPS_CAUSAL, 5, "1.4925e+14"},
        {&grok1, 8, 8192, FLOPS_CAUSAL, 5, "5.6815e+14"},
        {&grok1, 16, 8192, FLOPS_CAUSAL, 5, "1.0976e+15"},
        {&grok1, 32, 8192, FLOPS_CAUSAL, 5, "2.1564e+15"},
        {&nemotron4, 96, 4096, FLOPS_FULL, 5, "8.6212e+15"},
        {&nemotron4, 96, 4096, FLOPS_CAUSAL, 5, "8.4431e+15"},
        {&llama3_8b, 32, 8192, FLOPS_FULL, 6, "4.74422e+14"},
        {&llama3_8b, 32, 8192, FLOPS_CAUSAL, 4, "4.216e+14"},
        {&llama3_70b, 80, 8192, FLOPS_FULL, 6, "3.94391e+15"},
        {&llama3_70b, 80, 8192, FLOPS_CAUSAL, 4, "3.680e+15"},
        {&llama3_405b, 126, 8192, FLOPS_FULL, 6, "2.15075e+16"},
        {&llama3_405b, 126, 8192, FLOPS_CAUSAL, 5, "2.0676e+16"},
        {&llama3_405b, 8, 8192, FLOPS_FULL, 5, "1.4623e+15"},
        {&llama3_405b, 30, 8192, FLOPS_FULL, 5, "5.1995e+15"},
        {&llama3_405b, 62, 8192, FLOPS_FULL, 5, "1.0636e+16"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_config model = with(cases[i].model, line_of("layers %d", (int)cases[i].layers));
        const char         *flops =
            line_of("%.*e", cases[i].digits - 1, flops_of(&model, cases[i].convention, cases[i].sequence));
        cr_expect_str_eq(flops, cases[i].flops, "case %zu: %s, not %s", i, flops, cases[i].flops);
    }
}

Test(model, counts_as_the_published_tables_did)
{
    struct published_config llama = {.convention = FLOPS_FULL, .flop_digits = 3};
    cr_expect_float_eq(layers_flops(&llama2_70b, &llama, FLOPS_PUBLISHED, 4096), 1.82e15, 1.0);
    cr_expect_float_eq(layers_flops(&llama3_8b, &llama, FLOPS_PUBLISHED, 8192), 4.74e14, 1.0);
    cr_expect_float_eq(layers_flops(&llama3_70b, &llama, FLOPS_PUBLISHED, 8192), 3.94e15, 1.0);

    struct published_config nemotron = {.convention = FLOPS_FULL, .flop_kv_heads = 96};
    cr_expect_float_eq(layers_flops(&nemotron4, &nemotron, FLOPS_PUBLISHED, 4096), 1.00907e16, 0.5e11);
    nemotron.flop_digits = 3;
    cr_expect_float_eq(layers_flops(&nemotron4, &nemotron, FLOPS_PUBLISHED, 4096), 1.01e16, 1.0);

    struct published_config wide = {.convention = FLOPS_FULL, .flop_kv_heads = 16};
    cr_expect_float_eq(layers_flops(&llama3_405b, &wide, FLOPS_PUBLISHED, 8192), 2.1715e16, 0.5e12);
}

// The expected FLOPs per token are 6 N + 12 L h s, for N parameters, L layers, hidden size h and sequence length s. N
// is 8 030 261 248 for Llama 3 8B. For Llama 3.1 405B it is 405 853 388 800 minus the embedding's 128 256 x 16 384.
Test(model, counts_six_n_with_and_without_the_embedding)
{
    struct published_config with = {.convention = FLOPS_6N, .count_embedding = 1};
    cr_expect_float_eq(layers_flops(&llama3_8b, &with, FLOPS_6N, 8192) / 8192, 61066469376.0, 0.5);

    struct published_config without = {.convention = FLOPS_6N, .count_embedding = 0};
    cr_expect_float_eq(layers_flops(&llama3_405b, &without, FLOPS_PUBLISHED, 8192) / 8192, 2625449459712.0, 0.5);
}

Test(model, has_no_published_flops_without_a_published_table)
{
    cr_expect(isnan(flops_of(&llama3_8b, FLOPS_PUBLISHED, 8192)));
    cr_expect(isnan(flops_of(&llama3_8b, FLOPS_HARDWARE, 8192)));
}

Test(model, pads_the_vocabulary_to_the_multiple_times_tp)
{
    cr_expect_eq(model_padded_vocab(&llama3_8b, 1), 128256);
    cr_expect_eq(model_padded_vocab(&llama3_70b, 4), 128512);
    cr_expect_eq(model_padded_vocab(&llama3_405b, 8), 129024);
    cr_expect_eq(model_padded_vocab(&grok1, 4), 128512);
    cr_expect_eq(model_padded_vocab(&nemotron4, 8), 256000);
    cr_expect_eq(model_padded_vocab(&llama2_70b, 1), 32000);
}

Test(model, rotates_half_of_the_heads_of_nemotron)
{
    cr_expect_eq(model_rotary_width(&nemotron4), 96);
    cr_expect_eq(model_rotary_width(&llama3_8b), 128);
}

Test(model, accepts_the_published_shapes)
{
    const struct model_config *models[] = {&llama2_70b, &grok1, &nemotron4, &llama3_8b, &llama3_70b, &llama3_405b};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        status result = layers_check(models[i]);
        cr_expect_str_empty(result.text, "model %zu: %s", i, result.text);
    }
}

// Experts have over 99 % of the parameters of the largest model.
Test(model, counts_the_parameters_of_the_largest_model)
{
    struct model_config largest;
    model_set_defaults(&largest);
    for (const struct option *option = model_options; option->key != NULL; option++) {
        if (option->type == OPTION_INTEGER) {
            *(int64_t *)(void *)((char *)&largest + option->offset) = (int64_t)option->maximum;
        }
    }
    double expert  = 3.0 * (double)model_expert_hidden(&largest) * (double)model_expert_ffn(&largest);
    double experts = (double)(model_all_layers(&largest) * largest.experts) * expert;
    cr_expect_float_eq((double)layers_parameters(&largest), experts, 0.01 * experts);
}

Test(model, says_what_is_wrong_with_sizes)
{
    static const struct model_error rows[] = {
        {&llama3_8b, "hidden 0; vocab 0",
         "[model] hidden is missing: set it, or set preset\n[model] vocab is missing: set it, or set preset"},
        {&grok1, "top_k 9", "[model] top_k = 9 with experts = 8: expected 1 to 8"},
        {&llama3_8b, "kv_heads 5; rope_fraction 0.2578125; top_k 2",
         "[model] kv_heads = 5 does not divide heads = 32\n[model] rope_fraction = 0.257812 of head_dim = 128 is 33 "
         "elements, not an even number\n[model] top_k, shared_ffn, router options, capacity_factor and auxiliary_loss "
         "need experts: set experts, or leave them out\n[model] family = llama needs norm = rmsnorm, activation = "
         "swiglu, positions = rotary and rope_fraction = 1; family = gswbench supports every shape"},
    };
    EXPECT_MODEL_ERRORS(rows);
}

Test(model, says_what_is_wrong_with_a_pattern)
{
    static const struct model_error rows[] = {
        {&mixed, "", ""},
        {&mixed, "pattern dense, 3 x experts",
         "[model] pattern = dense, 3 x experts does not fit layers = 3: its counts add up to 4; "
         "without its count, the last kind fills the remaining layers"},
        {&mixed, "pattern 3 x dense, experts",
         "[model] pattern = 3 x dense, experts does not fit layers = 3: its counts add up to 4; "
         "without its count, the last kind fills the remaining layers"},
        {&mixed, "pattern (3 x dense, experts)",
         "[model] pattern = (3 x dense, experts) does not fit layers = 3: its counts add up to 4; "
         "without its count, the last kind fills the remaining layers"},
        {&mixed, "pattern dense, 2 x expert",
         "[model] pattern = dense, 2 x expert: \"expert\" is not a layer: use dense, experts, or kinds "
         "joined by + (attention, window_attention, latent, mlp, experts, mamba), each with a count, e.g. 3 x "
         "dense, 58 x experts or 2 x (dense, experts)"},
        {&mixed, "pattern attention + mlp + experts",
         "[model] pattern = attention + mlp + experts: a layer has mlp or experts, not both"},
        {&mixed, "pattern 3 x dense",
         "[model] experts = 3, but pattern = 3 x dense has no experts layer: add experts "
         "to pattern, or leave experts out"},
        {&mixed, "experts 0; top_k 0",
         "[model] pattern = dense, 2 x experts has experts: set experts to their number, and top_k to "
         "the experts per token"},
        {&mixed, "family mixtral", "[model] family = mixtral needs layers of one kind: use family = gswbench"},
        {&mixed, "family mixtral; shared_ffn 8; pattern ",
         "[model] family = mixtral has no shared experts (shared_ffn): use family = gswbench"},
    };
    EXPECT_MODEL_ERRORS(rows);
    struct model_config other = mixed;
    strcpy(other.pattern, "dense; experts");
    EXPECT_ERROR(layers_check(&other), EXIT_CONFIG,
                 "[model] pattern = dense; experts: \";\" is not a layer: use dense, experts, or kinds joined "
                 "by + (attention, window_attention, latent, mlp, experts, mamba), each with a count, e.g. 3 x dense, "
                 "58 x experts or 2 x (dense, experts)");
}

// The published counts include the QK norms, 2 x 128 parameters per layer.
Test(family, counts_the_parameters_of_a_published_qwen3)
{
    EXPECT_SUCCESS(layers_check(&qwen3_30b));
    cr_expect_eq(layers_parameters(&qwen3_30b), INT64_C(30532122624));
    cr_expect_eq(layers_active_parameters(&qwen3_30b), INT64_C(3353032704));
}

Test(family, is_refused_where_it_does_not_fit_the_block)
{
    static const struct model_error rows[] = {
        {&llama3_8b, "family gpt",
         "[model] family = gpt: expected llama, mixtral, qwen3, qwen3_moe, deepseek_v3 or gswbench"},
        {&llama3_8b, "family mixtral", "[model] family = mixtral needs experts: use family = llama"},
        {&llama3_8b, "family llama; experts 2; top_k 2", "[model] family = llama has no experts: use family = mixtral"},
        {&llama3_8b, "family llama; experts 2; top_k 2; qk_norm yes",
         "[model] family = llama has no experts: use family = qwen3_moe"},
        {&llama3_8b, "family mixtral; experts 2; top_k 2; qk_norm yes",
         "[model] family = mixtral has no qk_norm: use family = qwen3_moe"},
        {&llama3_8b, "family qwen3_moe; experts 2; top_k 2",
         "[model] family = qwen3_moe needs qk_norm = yes: use family = mixtral"},
        {&llama3_8b, "family qwen3_moe", "[model] family = qwen3_moe needs experts: use family = llama"},
        {&llama3_8b, "logit_scale 0.5",
         "[model] family = llama supports no scaled embeddings or logits (embedding_scale, "
         "logit_scale): use family = gswbench"},
    };
    EXPECT_MODEL_ERRORS(rows);
    struct model_config model = with(&llama3_8b, "family deepseek_v3");
    EXPECT_ERROR_WITH(
        layers_check(&model), EXIT_CONFIG,
        "[model] family = deepseek_v3 needs latent attention (kv_rank); family = gswbench supports every shape");
}
