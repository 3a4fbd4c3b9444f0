// SPDX-License-Identifier: MIT
// Tests which element type each kind of tensor has for given settings of [precision].
#include "gswbench/model.h"

#include <criterion/criterion.h>

#include "layouts.h"
#include "success.h"

static struct precision init(const struct precision_config *config)
{
    struct precision precision;
    REQUIRE(precision_init(&precision, config));
    return precision;
}

// Returns the precision of a job in BF16 with these options.
static struct precision precision_of(const char *options)
{
    struct tiny tiny = {0};
    option_set_defaults(precision_options, &tiny.precision);
    layout_apply(&tiny, options);
    return init(&tiny.precision);
}

Test(precision, defaults_to_bf16_with_fp32_gradients_and_masters)
{
    struct precision precision = precision_of("");
    cr_expect_eq(precision.weight, FORMAT_BF16);
    cr_expect_eq(precision.activation, FORMAT_BF16);
    cr_expect_eq(precision.gradient, FORMAT_F32);
    cr_expect_eq(precision.reduce, FORMAT_F32);
    cr_expect_eq(precision.moment, FORMAT_F32);
    cr_expect_eq(precision.low_precision_linears, 0);
    cr_expect(precision.has_master);
}

Test(precision, communications_gradients_as_they_are_unless_told)
{
    cr_expect_eq(precision_of("gradients bf16").reduce, FORMAT_BF16);
    struct precision precision = precision_of("gradients fp32; reduce bf16");
    cr_expect_eq(precision.gradient, FORMAT_F32);
    cr_expect_eq(precision.reduce, FORMAT_BF16);
}

Test(precision, takes_formats_and_targets_of_fp8_by_role)
{
    struct precision precision = precision_of("compute fp8; fp8_margin 2");
    cr_expect_eq(precision.low_precision_linears, 0xf);
    cr_expect_eq(precision.weight, FORMAT_BF16);
    cr_expect_eq(precision.activation, FORMAT_BF16);
    cr_expect_eq(precision.low_precision_format[ROLE_WEIGHT], FORMAT_E4M3);
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E5M2);
    cr_expect_eq(precision.low_precision_target[ROLE_INPUT], 112);
    cr_expect_eq(precision.low_precision_target[ROLE_GRADIENT], 14336);

    precision = precision_of("compute fp8; fp8_margin 2; fp8_format e4m3");
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E4M3);
    cr_expect_eq(precision.low_precision_target[ROLE_GRADIENT], 112);
}

Test(precision, chooses_the_recipe_of_its_formats)
{
    cr_expect_eq(precision_of("compute fp8").recipe, RECIPE_DELAYED);
    cr_expect_eq(precision_of("compute fp4; recipe nvfp4").recipe, RECIPE_NVFP4);
    struct precision precision = precision_of("compute fp4");
    cr_expect_eq(precision.recipe, RECIPE_NVFP4);
    cr_expect_eq(precision.low_precision_format[ROLE_GRADIENT], FORMAT_E2M1);
    cr_expect_eq(precision.fast_sums, FAST_SUMS_NONE);
    cr_expect(precision.scales_squares && precision.rounds_gradients_stochastically && precision.transforms);
    cr_expect_not(precision.fuses_copies);
}

Test(precision, covers_all_layers_but_the_last)
{
    struct precision precision = precision_of("compute fp8; bf16_last_layers 14");
    cr_expect(precision_covers(&precision, 88, 0) && precision_covers(&precision, 88, 73));
    cr_expect_not(precision_covers(&precision, 88, 74));
    cr_expect_not(precision_covers(&precision, 88, 88));    // an MTP module
    precision = precision_of("compute fp8; bf16_last_layers 0");
    cr_expect(precision_covers(&precision, 88, 87) && precision_covers(&precision, 88, 88));
    precision = precision_of("compute fp8; bf16_last_layers 0; bf16_prediction yes");
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
    struct precision frozen = precision_of("compute fp4; fp8_weights yes");
    EXPECT_SUCCESS(precision_check_weights(&frozen, true));
    // With compute in BF16, fp8_weights has no effect.
    cr_expect_not(precision_of("compute bf16; fp8_weights yes").has_low_precision_weights);
}

Test(precision, sums_fp8_gemms_fast_only_where_one_factor_is_for_all)
{
    cr_expect_eq(precision_of("compute fp8; fp8_fast_accumulation all").fast_sums, FAST_SUMS_ALL);
    cr_expect_eq(precision_of("compute fp8; fp8_fast_accumulation all; recipe block").fast_sums, FAST_SUMS_NONE);
    cr_expect_eq(precision_of("compute fp8; fp8_fast_accumulation all; recipe mxfp8").fast_sums, FAST_SUMS_NONE);
    cr_expect_eq(precision_of("compute fp8; fp8_fast_accumulation all; recipe rows").fast_sums, FAST_SUMS_ALL);
}

Test(precision, is_fp32_everywhere_in_the_reference_mode)
{
    struct precision precision = precision_of("compute fp32");
    cr_expect_eq(precision.weight, FORMAT_F32);
    cr_expect_eq(precision.activation, FORMAT_F32);
    cr_expect_eq(precision.gradient, FORMAT_F32);
    cr_expect_not(precision.has_master);
}

Test(precision, multiplies_at_the_rates_of_its_formats)
{
    static const struct {
        const char *options;
        int64_t     compute;
        enum rate   rate;
        uint32_t    rates;
    } rows[] = {{"compute fp32", COMPUTE_FP32, RATE_FP32, 1 << RATE_FP32},
                {"", COMPUTE_BF16, RATE_BF16, 1 << RATE_BF16},
                {"compute fp8", COMPUTE_FP8, RATE_FP8, 1 << RATE_BF16 | 1 << RATE_FP8},
                {"compute fp4", COMPUTE_FP4, RATE_FP4, 1 << RATE_BF16 | 1 << RATE_FP4}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct precision precision = precision_of(rows[i].options);
        cr_expect_eq(precision_rate(rows[i].compute), rows[i].rate, "%s", rows[i].options);
        cr_expect_eq(precision_rates(&precision), rows[i].rates, "%s", rows[i].options);
    }
}
