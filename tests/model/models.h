// SPDX-License-Identifier: MIT
// Published models, two models with simple counts, and a check of their errors.
#pragma once

#include <criterion/criterion.h>

#include "gswbench/plan_build.h"
#include "layouts.h"

// clang-format off
// Models of Llama by layers, hidden size, heads, FFN size, vocabulary, and the multiple to which it is padded.
#define LLAMA(layers_, hidden_, heads_, ffn_, vocab_, multiple_) { \
    .family = "llama", .layers = layers_, .hidden = hidden_, .heads = heads_, .kv_heads = 8, .head_dim = 128, .ffn = ffn_, \
    .vocab = vocab_, .vocab_multiple = multiple_, .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, \
    .router_normalise = 1, .router_scale = 1 }
static const struct model_config llama2_70b  = LLAMA(80, 8192, 64, 28672, 32000, 1),
                                 llama3_8b   = LLAMA(32, 4096, 32, 14336, 128256, 128),
                                 llama3_70b  = LLAMA(80, 8192, 64, 28672, 128256, 128),
                                 llama3_405b = LLAMA(126, 16384, 128, 53248, 128256, 128);
static const struct model_config grok1 = {
    .family = "gswbench", .layers = 64, .hidden = 6144, .heads = 48, .kv_heads = 8, .head_dim = 128, .ffn = 32768,
    .vocab = 128256, .vocab_multiple = 128, .activation = ACTIVATION_GEGLU, .rope_fraction = 1, .experts = 8, .top_k = 2,
};
static const struct model_config nemotron4 = {
    .family = "gswbench", .layers = 96, .hidden = 18432, .heads = 96, .kv_heads = 8, .head_dim = 192, .ffn = 73728,
    .vocab = 256000, .vocab_multiple = 128, .activation = ACTIVATION_RELU2, .norm = NORM_LAYER_1P, .rope_fraction = 0.5,
};
static const struct model_config qwen3_30b = {
    .family = "qwen3_moe", .layers = 48, .hidden = 2048, .heads = 32, .kv_heads = 4, .head_dim = 128, .ffn = 6144,
    .vocab = 151936, .vocab_multiple = 1, .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, .qk_norm = 1,
    .experts = 128, .expert_ffn = 768, .top_k = 8, .router_normalise = 1, .router_scale = 1,
};
// This model has one dense layer and two MoE layers. An expert is narrower than the MLP of the dense layer.
static const struct model_config mixed = {
    .pattern = "dense, 2 x experts", .family = "gswbench", .layers = 3, .hidden = 4, .heads = 2, .kv_heads = 1,
    .head_dim = 2, .ffn = 6, .vocab = 10, .experts = 3, .expert_ffn = 5, .top_k = 2, .embedding_scale = 1,
    .logit_scale = 1, .rope_fraction = 1, .router_normalise = 1, .router_scale = 1,
};
// This model has the sizes of DeepSeek-V3, but plain multi-head attention.
static const struct model_config wide_experts = {
    .pattern = "3 x dense, 58 x experts", .family = "gswbench", .layers = 61, .hidden = 7168, .heads = 128,
    .kv_heads = 128, .head_dim = 128, .rope_fraction = 1, .ffn = 18432, .expert_ffn = 2048, .experts = 256,
    .top_k = 8, .router_score = ROUTER_SIGMOID, .router_groups = 8, .router_top_groups = 4, .vocab = 129280,
};
// The models are DeepSeek-V3 (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024) without its MTP module, and Moonlight
// (Moonshot AI, 2025), which does not compress queries.
static const struct model_config deepseek = {
    .pattern = "3 x dense, 58 x experts", .family = "gswbench", .layers = 61, .hidden = 7168, .heads = 128,
    .kv_heads = 128, .head_dim = 128, .q_rank = 1536, .kv_rank = 512, .rope_dim = 64, .value_dim = 128,
    .rope_fraction = 1, .ffn = 18432, .expert_ffn = 2048, .shared_ffn = 2048, .experts = 256, .top_k = 8,
    .router_score = ROUTER_SIGMOID, .router_normalise = 1, .vocab = 129280, .vocab_multiple = 1,
};
static const struct model_config moonlight = {
    .pattern = "dense, 26 x experts", .family = "gswbench", .layers = 27, .hidden = 2048, .heads = 16, .kv_heads = 16,
    .head_dim = 128, .kv_rank = 512, .rope_dim = 64, .value_dim = 128, .rope_fraction = 1, .ffn = 11264,
    .expert_ffn = 1408, .shared_ffn = 2816, .experts = 64, .top_k = 6, .router_score = ROUTER_SIGMOID,
    .router_normalise = 1, .vocab = 163840, .vocab_multiple = 1,
};
static const struct model_config gpt3 = {
    .family = "gswbench", .layers = 96, .hidden = 12288, .heads = 96, .kv_heads = 96, .head_dim = 128, .ffn = 49152,
    .vocab = 51200, .vocab_multiple = 1, .activation = ACTIVATION_GELU, .norm = NORM_LAYER,
    .positions = POSITIONS_LEARNED, .max_positions = 2048, .rope_fraction = 1, .attention_bias = 1, .mlp_bias = 1, .tied = 1,
};
// The first two models are Nemotron-H 56B (NVIDIA, "Nemotron-H", 2025) and Nemotron 3 Nano 30B-A3B (NVIDIA, 2025).
static const struct model_config nemotron_h = {
    .pattern = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-"
               "M-M-M-M-M-",
    .family = "gswbench", .layers = 118, .hidden = 8192, .heads = 64, .kv_heads = 8, .head_dim = 128, .ffn = 32768,
    .vocab = 131072, .vocab_multiple = 1, .activation = ACTIVATION_RELU2, .positions = POSITIONS_NONE,
    .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, .mamba_heads = 256, .mamba_head_dim = 64,
    .mamba_state = 256, .mamba_groups = 8, .mamba_conv = 4, .mamba_chunk = 128,
};
static const struct model_config nano = {
    .pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", .family = "gswbench", .layers = 52,
    .hidden = 2688, .heads = 32, .kv_heads = 2, .head_dim = 128, .ffn = 1856, .vocab = 131072, .vocab_multiple = 1,
    .activation = ACTIVATION_RELU2, .positions = POSITIONS_NONE, .embedding_scale = 1, .logit_scale = 1,
    .rope_fraction = 1, .experts = 128, .expert_ffn = 1856, .shared_ffn = 3712, .top_k = 6,
    .router_score = ROUTER_SIGMOID, .router_normalise = 1, .router_scale = 2.5, .mamba_heads = 64,
    .mamba_head_dim = 64, .mamba_state = 128, .mamba_groups = 8, .mamba_conv = 4, .mamba_chunk = 128,
};
// Nemotron 3 Super 120B-A12B (NVIDIA, 2026) has a multi-token prediction module, which it applies twice.
static const struct model_config super = {
    .pattern = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME/*E/*E",
    .family = "gswbench", .layers = 88, .hidden = 4096, .heads = 32, .kv_heads = 2, .head_dim = 128, .ffn = 2688,
    .vocab = 131072, .vocab_multiple = 1, .activation = ACTIVATION_RELU2, .positions = POSITIONS_NONE,
    .embedding_scale = 1, .logit_scale = 1, .rope_fraction = 1, .predicted_tokens = 2, .repeat_prediction = 1,
    .experts = 512, .expert_ffn = 2688, .expert_hidden = 1024, .shared_ffn = 5376, .top_k = 22,
    .router_score = ROUTER_SIGMOID, .router_normalise = 1, .router_scale = 5, .mamba_heads = 128,
    .mamba_head_dim = 64, .mamba_state = 128, .mamba_groups = 8, .mamba_conv = 4, .mamba_chunk = 128,
};
// clang-format on

// Returns the model with changed options (layouts.h).
static inline struct model_config with(const struct model_config *model, const char *changes)
{
    struct tiny tiny = {.model = *model};
    layout_apply(&tiny, changes);
    return tiny.model;
}

// Returns the FLOPs of a sequence for a model of which nothing is published.
static inline double flops_of(const struct model_config *model, enum flop_convention convention, int64_t sequence)
{
    const struct published_config none = {.convention = FLOPS_PUBLISHED};
    return layers_flops(model, &none, convention, sequence);
}

// The error of a model with these changed options. text "": the model has no error.
struct model_error {
    const struct model_config *model;
    const char                *changes, *text;
};

static inline void expect_model_errors(const struct model_error *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct model_config model  = with(rows[i].model, rows[i].changes);
        status              result = layers_check(&model);
        cr_expect_str_eq(result.text, rows[i].text, "%s: %s", rows[i].changes, result.text);
        cr_expect_eq(result.exit_code, rows[i].text[0] == '\0' ? EXIT_VALID : EXIT_CONFIG);
    }
}

#define EXPECT_MODEL_ERRORS(rows) expect_model_errors(rows, sizeof(rows) / sizeof((rows)[0]))
