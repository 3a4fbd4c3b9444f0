// SPDX-License-Identifier: MIT
// Tests which element type each kind of tensor has for given settings of [precision].
#include "gswbench/model.h"

#include <criterion/criterion.h>

#include "layouts.h"

static struct precision init(const struct precision_config *config)
{
    struct precision precision;
    status           result = precision_init(&precision, config);
    cr_assert_str_empty(result.text);
    return precision;
}

static struct precision_config defaults(void)
{
    struct precision_config config;
    option_set_defaults(precision_options, &config);
    return config;
}

Test(precision, defaults_to_bf16_with_fp32_gradients_and_masters)
{
    struct precision_config config    = defaults();
    struct precision        precision = init(&config);
    cr_expect_eq(precision.weight, FORMAT_BF16);
    cr_expect_eq(precision.activation, FORMAT_BF16);
    cr_expect_eq(precision.gradient, FORMAT_F32);
    cr_expect_eq(precision.reduce, FORMAT_F32);
    cr_expect_eq(precision.moment, FORMAT_F32);
    cr_expect(precision.has_master);
}

Test(precision, communications_gradients_as_they_are_unless_told)
{
    struct precision_config config = defaults();
    config.gradients               = FORMAT_BF16;
    cr_expect_eq(init(&config).reduce, FORMAT_BF16);

    config.gradients = FORMAT_F32;
    config.reduce    = FORMAT_BF16;
    cr_expect_eq(init(&config).gradient, FORMAT_F32);
    cr_expect_eq(init(&config).reduce, FORMAT_BF16);
}

Test(precision, keeps_bf16_roles_beside_gemms_in_fp8)
{
    struct precision_config config = defaults();
    cr_expect_eq(init(&config).low_precision_linears, 0);
    config.compute             = COMPUTE_FP8;
    struct precision precision = init(&config);
    cr_expect_eq(precision.low_precision_linears, 0xf);
    cr_expect_eq(precision.weight, FORMAT_BF16);
    cr_expect_eq(precision.activation, FORMAT_BF16);
}

Test(precision, takes_formats_and_targets_of_fp8_by_role)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP8;
    config.fp8_margin              = 2;
    struct precision precision     = init(&config);
    cr_expect_eq(precision.low_precision_format[ROLE_WEIGHT], FORMAT_E4M3);
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E5M2);
    cr_expect_eq(precision.low_precision_target[ROLE_INPUT], 112);
    cr_expect_eq(precision.low_precision_target[ROLE_GRADIENT], 14336);

    config.fp8_format = FP8_E4M3;
    precision         = init(&config);
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E4M3);
    cr_expect_eq(precision.low_precision_target[ROLE_GRADIENT], 112);
}

Test(precision, chooses_the_recipe_of_its_formats)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP8;
    cr_expect_eq(init(&config).recipe, RECIPE_DELAYED);
    config.compute             = COMPUTE_FP4;
    struct precision precision = init(&config);
    cr_expect_eq(precision.recipe, RECIPE_NVFP4);
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E2M1);
    cr_expect_eq(precision.fast_sums, FAST_SUMS_NONE);
    cr_expect(precision.scales_squares && precision.rounds_gradients_stochastically && precision.transforms);
    cr_expect_not(precision.fuses_copies);
    config.recipe = RECIPE_NVFP4;
    cr_expect_eq(init(&config).recipe, RECIPE_NVFP4);
}

Test(precision, covers_all_layers_but_the_last)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP8;
    config.bf16_last_layers        = 14;
    struct precision precision     = init(&config);
    cr_expect(precision_covers(&precision, 88, 0) && precision_covers(&precision, 88, 73));
    cr_expect_not(precision_covers(&precision, 88, 74));
    cr_expect_not(precision_covers(&precision, 88, 88));    // an MTP module
    config.bf16_last_layers = 0;
    precision               = init(&config);
    cr_expect(precision_covers(&precision, 88, 87) && precision_covers(&precision, 88, 88));
    config.bf16_prediction = 1;
    precision              = init(&config);
    cr_expect(precision_covers(&precision, 88, 87) && !precision_covers(&precision, 88, 88));
}

Test(precision, refuses_what_does_not_go_together)
{
    static const struct {
        const char *options, *text;
    } rows[] = {
        {"compute fp8; fp8_gemms none",
         "[precision] fp8_gemms = none with compute = fp8 runs no GEMM in FP8: add a linear, or set compute = bf16"},
        {"compute fp8; fp8_gemms fc1; fp8_weights yes",
         "[precision] fp8_weights = yes stores every linear in FP8: it needs fp8_gemms = qkv, projection, fc1, fc2, "
         "bf16_last_layers = 0, bf16_prediction = no and master = yes"},
        {"compute fp8; bf16_prediction yes; fp8_weights yes",
         "[precision] fp8_weights = yes stores every linear in FP8: it needs fp8_gemms = qkv, projection, fc1, fc2, "
         "bf16_last_layers = 0, bf16_prediction = no and master = yes"},
        {"compute fp8; bf16_last_layers 1; fp8_weights yes",
         "[precision] fp8_weights = yes stores every linear in FP8: it needs fp8_gemms = qkv, projection, fc1, fc2, "
         "bf16_last_layers = 0, bf16_prediction = no and master = yes"},
        {"compute fp4; fp8_gemms none",
         "[precision] fp8_gemms = none with compute = fp4 runs no GEMM in FP4: add a linear, or set compute = bf16"},
        {"compute fp4; fp8_weights yes",
         "[precision] fp8_weights = yes gathers weights with one scale per tensor: it needs recipe = delayed or "
         "current, not nvfp4"},
        {"compute fp4; recipe mxfp8",
         "[precision] recipe = mxfp8 multiplies in FP8: set compute = fp8, or recipe = auto"},
        {"compute fp8; recipe nvfp4",
         "[precision] recipe = nvfp4 multiplies in FP4: set compute = fp4, or recipe = auto"},
        {"compute bf16; recipe nvfp4",
         "[precision] recipe = nvfp4 multiplies in FP4: set compute = fp4, or recipe = auto"},
        {"compute fp8; fp8_weights yes; recipe block",
         "[precision] fp8_weights = yes gathers weights with one scale per tensor: it needs recipe = delayed or "
         "current, not block"},
        {"compute fp8; fp8_weights yes; recipe mxfp8",
         "[precision] fp8_weights = yes gathers weights with one scale per tensor: it needs recipe = delayed or "
         "current, not mxfp8"},
        {"compute fp8; fp8_weights yes; recipe rows",
         "[precision] fp8_weights = yes gathers weights with one scale per tensor: it needs recipe = delayed or "
         "current, not rows"},
        {"compute fp32; moments bf16",
         "[precision] compute = fp32 is fp32 everywhere: gradients, reduce and moments cannot be bf16"},
        {"compute fp32; fp8_weights yes",
         "[precision] compute = fp32 is fp32 everywhere: fp8_weights = yes would store weights in FP8 (set "
         "fp8_weights = no, or compute = fp8)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct precision_config config = tiny_of(rows[i].options).precision;
        struct precision        precision;
        status                  result = precision_init(&precision, &config);
        result                         = failed(&result) ? result : precision_check_weights(&precision, false);
        cr_expect_str_eq(result.text, rows[i].text, "%s: %s", rows[i].options, result.text);
        cr_expect_eq(result.exit_code, EXIT_CONFIG);
    }
    // Frozen weights are not gathered over ranks, so layouts of scales that cannot be gathered are allowed for them.
    struct precision_config stored = tiny_of("compute fp4; fp8_weights yes").precision;
    struct precision        frozen = init(&stored);
    status                  result = precision_check_weights(&frozen, true);
    cr_expect_not(failed(&result));
    // With compute in BF16, fp8_weights has no effect.
    struct precision_config both = tiny_of("compute bf16; fp8_weights yes").precision;
    cr_expect_not(init(&both).has_low_precision_weights);
}

Test(precision, sums_fp8_gemms_fast_only_where_one_factor_is_for_all)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP8;
    config.fp8_fast_accumulation   = FAST_SUMS_ALL;
    cr_expect_eq(init(&config).fast_sums, FAST_SUMS_ALL);
    config.recipe = RECIPE_BLOCK;
    cr_expect_eq(init(&config).fast_sums, FAST_SUMS_NONE);
    config.recipe = RECIPE_MXFP8;
    cr_expect_eq(init(&config).fast_sums, FAST_SUMS_NONE);
    config.recipe = RECIPE_ROWS;
    cr_expect_eq(init(&config).fast_sums, FAST_SUMS_ALL);
}

Test(precision, is_fp32_everywhere_in_the_reference_mode)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP32;
    struct precision precision     = init(&config);
    cr_expect_eq(precision.weight, FORMAT_F32);
    cr_expect_eq(precision.activation, FORMAT_F32);
    cr_expect_eq(precision.gradient, FORMAT_F32);
    cr_expect_not(precision.has_master);
}

Test(precision, multiplies_at_the_rates_of_its_formats)
{
    struct precision_config config = defaults();
    cr_expect_eq(precision_rate(COMPUTE_FP32), RATE_FP32);
    cr_expect_eq(precision_rate(COMPUTE_BF16), RATE_BF16);
    cr_expect_eq(precision_rate(COMPUTE_FP8), RATE_FP8);
    cr_expect_eq(precision_rate(COMPUTE_FP4), RATE_FP4);
    struct precision precision = init(&config);
    cr_expect_eq(precision_rates(&precision), 1 << RATE_BF16);
    config.compute = COMPUTE_FP8;
    precision      = init(&config);
    cr_expect_eq(precision_rates(&precision), 1 << RATE_BF16 | 1 << RATE_FP8);
    config.compute = COMPUTE_FP4;
    precision      = init(&config);
    cr_expect_eq(precision_rates(&precision), 1 << RATE_BF16 | 1 << RATE_FP4);
    config.compute = COMPUTE_FP32;
    precision      = init(&config);
    cr_expect_eq(precision_rates(&precision), 1 << RATE_FP32);
}
