// SPDX-License-Identifier: MIT
// Tests models with experts, latent attention, MTP modules, windows, sinks, biases, learned positions or ALiBi: their
// FLOPs and parameters, and the errors for inconsistent settings.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "line.h"
#include "models.h"
#include "success.h"

// The shared expert is as wide as a routed one. Every token uses its 3 x 7168 x 2048 weights in each of 58 layers.
Test(experts_model, counts_a_shared_expert_as_one_that_every_token_uses)
{
    struct model_config shared = with(&wide_experts, "shared_ffn 2048");
    cr_expect_eq(layers_parameters(&shared) - layers_parameters(&wide_experts), 2554331136);
    cr_expect_eq(layers_active_parameters(&shared) - layers_active_parameters(&wide_experts), 2554331136);
    cr_expect_float_eq(flops_of(&shared, FLOPS_FULL, 4096) - flops_of(&wide_experts, FLOPS_FULL, 4096),
                       4096.0 * 6 * 2554331136.0, 1e3);
}

Test(experts_model, says_what_is_wrong_with_groups_of_experts)
{
    static const struct model_error rows[] = {
        {&wide_experts, "", ""},
        {&wide_experts, "router_groups 0", "[model] router_top_groups = 4 needs router_groups"},
        {&wide_experts, "router_groups 5", "[model] router_groups = 5 does not divide experts = 256"},
        {&wide_experts, "experts 64; router_groups 32; router_top_groups 3",
         "[model] router_top_groups = 3 of router_groups = 32 have fewer than top_k = 8 experts, with "
         "2 per group: raise router_top_groups"},
    };
    EXPECT_MODEL_ERRORS(rows);
}

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

// Query, rotary and value widths all differ, and values (160) are wider than the non-rotary part of keys (96). So a
// count that uses the wrong width fails.
Test(latent_model, counts_weights_by_the_width_that_each_reads)
{
    struct model_config model  = with(&deepseek, "head_dim 96; value_dim 160");
    int64_t             keys   = (128 - 96) * 128LL * (1536 + 512);    // weights of queries and keys
    int64_t             values = (160 - 128) * 128LL * (512 + 7168);
    cr_expect_eq(layers_parameters(&model) - layers_parameters(&deepseek), 61 * (values - keys));
    cr_expect_eq(layers_active_parameters(&model) - layers_active_parameters(&deepseek), 61 * (values - keys));
}

// Attention scores use a head width of 128 + 64, and values one of 128. The second model has 32 rotary elements less,
// which each pair of positions multiplies once forward and twice backward.
Test(latent_model, counts_scores_and_values_by_their_own_widths)
{
    struct model_config narrow   = with(&deepseek, "rope_dim 32");
    double              attended = 61.0 * 128 * 32 * 2 * 3 * 4096 * 4096;    // 32 elements less in each score GEMM
    double              weights  = 61.0 * (1536 * 128 * 32 + 7168 * 32) * 6 * 4096;
    cr_expect_float_eq(flops_of(&deepseek, FLOPS_FULL, 4096) - flops_of(&narrow, FLOPS_FULL, 4096), attended + weights,
                       1e6);
}

Test(latent_model, says_what_is_wrong)
{
    static const struct model_error rows[] = {
        {&deepseek, "", ""},
        {&deepseek, "qk_norm yes", "[model] qk_norm = yes: latent attention does not support it: set qk_norm = no"},
        {&deepseek, "kv_rank 0; q_rank 0; value_dim 0",
         "[model] rope_dim = 64 applies to latent attention only: set kv_rank, or leave it out"},
        {&deepseek, "pattern attention + mlp; experts 0; top_k 0; expert_ffn 0; shared_ffn 0; router_score softmax",
         "[model] pattern = attention + mlp mixes attention and latent attention, which this version "
         "does not support: remove attention from pattern, or kv_rank"},
    };
    EXPECT_MODEL_ERRORS(rows);
}

static struct model_config predicting(int64_t tokens)
{
    return with(&deepseek, line_of("predicted_tokens %d; pattern 3 x dense, experts", (int)tokens));
}

// README_WEIGHTS of DeepSeek-V3 gives 671 B parameters, and 11.5 B for the MTP module without the shared embedding and
// head. The 11.5 B also exclude the 103 M parameters of the module's projection.
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

// With MTP, FLOPs include the module's matrices and a second use of the head. Megatron-Bridge's published figures imply
// 250 GFLOP per token without MTP and 260 with it (25.11: 961 TFLOP/s at 3848 tokens/s; 26.04: 1290 at 4965).
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
    EXPECT_SUCCESS(layers_check(&model));
    strcpy(model.family, "qwen3_moe");
    EXPECT_ERROR_WITH(layers_check(&model), EXIT_CONFIG,
                      "[model] family = qwen3_moe supports no MTP modules (predicted_tokens): use family = gswbench");
}

// A pattern can repeat a group of layers, as in GPT-OSS, and ends after model.layers layers. FLOPs count the keys
// inside the window only.
Test(windows_model, counts_what_windows_show)
{
    struct model_config model = with(&mixed, "layers 4; window 3; pattern 2 x (window_attention + experts, dense)");
    cr_expect_eq(layers_with_experts(&model), 2);
    cr_expect_eq(layers_expert_layer(&model, 1), 2);
    model = with(&model, "pattern (window_attention + experts, dense)");
    cr_expect_eq(layers_with_experts(&model), 2, "a group is all that remains");
    model.layers = 3;
    cr_expect_eq(layers_with_experts(&model), 2, "and ends with the layers");
    model.layers = 4;
    // With a window of 3, the first two of 8 queries see one and two keys, and each other query three: 21 pairs.
    double multiplied = 8.0 * 6 * (4 * 48 + 2 * 72 + 2 * 120 + 40);
    cr_expect_float_eq(flops_of(&model, FLOPS_FULL, 8), multiplied + 2 * 12 * 4 * (64 + 21), 1e-6);
    cr_expect_float_eq(flops_of(&model, FLOPS_CAUSAL, 8), multiplied + 2 * 12 * 4 * (32 + 21), 1e-6);
    model.window = 100;
    cr_expect_float_eq(flops_of(&model, FLOPS_CAUSAL, 8), multiplied + 4 * 12 * 4 * 32, 1e-6);
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
    static const struct model_error rows[] = {
        {&mixed, "family mixtral; pattern ; attention_sinks yes",
         "[model] family = mixtral supports no windows, sinks or biases (window, attention_sinks, "
         "attention_bias, mlp_bias, router_offset): use family = gswbench"},
        {&mixed, "pattern 2 x (dense, experts",
         "[model] pattern = 2 x (dense, experts: \"\" is not a layer: use dense, experts, or kinds "
         "joined by + (attention, window_attention, latent, mlp, experts, mamba), each with a count, e.g. 3 x "
         "dense, 58 x experts or 2 x (dense, experts)"},
        {&mixed, "pattern window_attention + mlp, 2 x experts",
         "[model] pattern = window_attention + mlp, 2 x experts has window_attention, which needs a "
         "window: set window to a number of positions"},
        {&mixed, "pattern window_attention + attention, 2 x experts",
         "[model] pattern = window_attention + attention, 2 x experts: a layer has window_attention or "
         "attention, not both"},
        {&mixed, "window 3",
         "[model] window = 3, but pattern = dense, 2 x experts has no window_attention: add it to "
         "pattern, or leave window out"},
    };
    EXPECT_MODEL_ERRORS(rows);
}

static struct model_config mpt(int64_t layers, int64_t hidden, int64_t positions)
{
    int heads = (int)hidden / 128;
    return with(&gpt3, line_of("layers %d; hidden %d; heads %d; kv_heads %d; ffn %d; vocab 50368; max_positions %d",
                               (int)layers, (int)hidden, heads, heads, 4 * (int)hidden, (int)positions));
}

// The expected counts are NumParams in LLM Foundry's tables (scripts/train/benchmarking/README.md). Models there have a
// learned position for each token of the sequence.
Test(positions_model, counts_the_parameters_of_mpt)
{
    const struct {
        int64_t layers, hidden, positions, parameters;
    } cases[] = {
        {24, 1536, 512, 758111232},    {24, 1536, 2048, 760470528},   {24, 2048, 2048, 1315950592},
        {24, 2048, 65536, 1445974016}, {32, 2560, 2048, 2651837440},  {32, 4096, 1024, 6654664704},
        {32, 4096, 2048, 6658859008},  {32, 4096, 65536, 6918905856}, {40, 5120, 32768, 13011240960},
        {48, 7168, 2048, 29975214080}, {48, 7168, 8192, 30019254272}, {80, 8192, 2048, 64862437376},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_config model = mpt(cases[i].layers, cases[i].hidden, cases[i].positions);
        int64_t             count = layers_parameters(&model);
        cr_expect_eq(count, cases[i].parameters, "case %zu: %" PRId64, i, count);
    }
}

// The released mosaicml/mpt-7b uses ALiBi, a larger vocabulary, and norms without biases. The expected count is the
// checkpoint's.
Test(positions_model, counts_no_parameters_for_slopes)
{
    struct model_config table = mpt(32, 4096, 0);
    struct model_config model =
        with(&table, "positions alibi; attention_bias no; mlp_bias no; norm rmsnorm; vocab 50432");
    cr_expect_eq(layers_parameters(&model), 6649286656);
}

// Equation 2 of Narayanan et al. (2021) is 12 l h^2 (1 + 13 / 12 h + (V + s) / 12 l h), for l layers, hidden size h, V
// tokens in the vocabulary and s positions. It omits the last norm, which has 2 h parameters.
Test(positions_model, counts_the_parameters_of_gpt3)
{
    cr_expect_eq(layers_parameters(&gpt3), INT64_C(174615822336) + 2 * 12288);
    cr_expect_eq(layers_active_parameters(&gpt3), INT64_C(174615846912));
}

// Position embeddings are looked up in a table and not multiplied, so a model without positions has the same FLOPs.
Test(positions_model, counts_no_flops_for_a_table_of_positions)
{
    struct model_config     none    = with(&gpt3, "positions none; max_positions 0");
    struct published_config counted = {.count_embedding = 1}, omitted = {.count_embedding = 0};
    cr_expect_eq(layers_flops(&gpt3, &counted, FLOPS_FULL, 2048), layers_flops(&none, &counted, FLOPS_FULL, 2048));
    double embedded = layers_flops(&gpt3, &counted, FLOPS_6N, 2048),
           bare     = layers_flops(&gpt3, &omitted, FLOPS_6N, 2048);
    cr_expect_float_eq((embedded - bare) / 2048, 6.0 * 2048 * 12288, 1e3);
    cr_expect_eq(bare, layers_flops(&none, &omitted, FLOPS_6N, 2048));
}

Test(positions_model, rotates_only_where_positions_rotate)
{
    struct model_config model = gpt3;
    cr_expect_eq(model_rotary_width(&model), 0);
    model.positions = POSITIONS_ROTARY;
    cr_expect_eq(model_rotary_width(&model), 128);
    model.positions = POSITIONS_ALIBI;
    cr_expect_eq(model_rotary_width(&model), 0);
}

Test(positions_model, says_what_does_not_go_together)
{
    static const struct model_error rows[] = {
        {&gpt3, "", ""},
        {&gpt3, "max_positions 0",
         "[model] positions = learned needs a table: set max_positions to its number of rows"},
        {&gpt3, "positions alibi; max_positions 2048",
         "[model] max_positions = 2048 applies to learned positions only: set positions = learned, or leave it out"},
        {&gpt3, "positions none; max_positions 0; norm rmsnorm; attention_bias no; kv_rank 64; rope_dim 32",
         "[model] positions = none: latent attention supports rotary only: set positions = rotary"},
    };
    EXPECT_MODEL_ERRORS(rows);
    struct train_config train = {.sequence = 2048};
    EXPECT_SUCCESS(layers_check_train(&gpt3, &train));
    train.sequence = 2049;
    EXPECT_ERROR(layers_check_train(&gpt3, &train), EXIT_CONFIG,
                 "[train] sequence = 2049 is longer than the table of learned positions, [model] "
                 "max_positions = 2048: change one of them");
}
