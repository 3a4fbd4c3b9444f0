// SPDX-License-Identifier: MIT
// Models with learned positions or ALiBi: their published parameter counts, and their rules.
#include "gswbench/layers.h"

#include <criterion/criterion.h>
#include <inttypes.h>

// clang-format off
static const struct model_config gpt3 = {
    .family = "gswbench", .layers = 96, .hidden = 12288, .heads = 96, .kv_heads = 96, .head_dim = 128, .ffn = 49152,
    .vocab = 51200, .vocab_multiple = 1, .activation = ACTIVATION_GELU, .norm = NORM_LAYER,
    .positions = POSITIONS_LEARNED, .max_positions = 2048, .rope_fraction = 1, .attention_bias = 1, .mlp_bias = 1, .tied = 1,
};
// clang-format on

static struct model_config mpt(int64_t layers, int64_t hidden, int64_t head_dim, int64_t positions)
{
    struct model_config model = gpt3;
    model.layers              = layers;
    model.hidden              = hidden;
    model.heads = model.kv_heads = hidden / head_dim;
    model.head_dim               = head_dim;
    model.ffn                    = 4 * hidden;
    model.vocab                  = 50368;
    model.max_positions          = positions;
    return model;
}

// NumParams in LLM Foundry's tables (scripts/train/benchmarking/README.md). A model has as many positions as its
// sequence length.
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
        struct model_config model = mpt(cases[i].layers, cases[i].hidden, 128, cases[i].positions);
        int64_t             count = layers_parameters(&model);
        cr_expect_eq(count, cases[i].parameters, "case %zu: %" PRId64, i, count);
    }
}

// mosaicml/mpt-7b as released: ALiBi, a larger vocabulary, and norms without biases, which are less than a millionth of
// the parameters.
Test(positions_model, counts_no_parameters_for_slopes)
{
    struct model_config model = mpt(32, 4096, 128, 0);
    model.positions           = POSITIONS_ALIBI;
    model.attention_bias = model.mlp_bias = 0;
    model.norm                            = NORM_RMS;
    model.vocab                           = 50432;
    cr_expect_eq(layers_parameters(&model), 6649286656);
}

// 12 l h^2 (1 + 13 / 12 h + (V + s) / 12 l h), equation 2 of Narayanan et al. (2021), which omits the last norm.
Test(positions_model, counts_the_parameters_of_gpt3)
{
    cr_expect_eq(layers_parameters(&gpt3), INT64_C(174615822336) + 2 * 12288);
    cr_expect_eq(layers_active_parameters(&gpt3), INT64_C(174615846912));
}

// The table is not used in a GEMM, so FLOPs equal a model's without positions.
Test(positions_model, counts_no_flops_for_a_table_of_positions)
{
    struct model_config     none = gpt3;
    struct published_config with = {.count_embedding = 1}, without = {.count_embedding = 0};
    none.positions     = POSITIONS_NONE;
    none.max_positions = 0;
    cr_expect_eq(layers_flops(&gpt3, &with, FLOPS_FULL, 2048), layers_flops(&none, &with, FLOPS_FULL, 2048));
    double embedded = layers_flops(&gpt3, &with, FLOPS_6N, 2048), bare = layers_flops(&gpt3, &without, FLOPS_6N, 2048);
    cr_expect_float_eq((embedded - bare) / 2048, 6.0 * 2048 * 12288, 1e3);
    cr_expect_eq(bare, layers_flops(&none, &without, FLOPS_6N, 2048));
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

static void expect_error(const struct model_config *model, const char *text)
{
    status result = layers_check(model);
    cr_expect_str_eq(result.text, text);
}

Test(positions_model, says_what_does_not_go_together)
{
    struct model_config model = gpt3;
    expect_error(&model, "");
    model.max_positions = 0;
    expect_error(&model, "[model] positions = learned needs a table: set max_positions to its number of rows");
    model.positions     = POSITIONS_ALIBI;
    model.max_positions = 2048;
    expect_error(
        &model,
        "[model] max_positions = 2048 applies to learned positions only: set positions = learned, or leave it out");
    model                = gpt3;
    model.positions      = POSITIONS_NONE;
    model.max_positions  = 0;
    model.norm           = NORM_RMS;
    model.attention_bias = 0;
    model.kv_rank        = 64;
    model.rope_dim       = 32;
    expect_error(&model, "[model] positions = none: latent attention supports rotary only: set positions = rotary");
    struct train_config train = {.sequence = 2048};
    status              fits  = layers_check_train(&gpt3, &train);
    cr_expect_str_empty(fits.text);
    train.sequence = 2049;
    fits           = layers_check_train(&gpt3, &train);
    cr_expect_str_eq(fits.text, "[train] sequence = 2049 is longer than the table of learned positions, [model] "
                                "max_positions = 2048: change one of them");
}
