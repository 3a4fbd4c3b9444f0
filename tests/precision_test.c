// SPDX-License-Identifier: MIT
// Which element type each role of a step gets.
#include "gswbench/precision.h"

#include <criterion/criterion.h>

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
    cr_expect_eq(precision.weight, DTYPE_BF16);
    cr_expect_eq(precision.activation, DTYPE_BF16);
    cr_expect_eq(precision.gradient, DTYPE_F32);
    cr_expect_eq(precision.reduce, DTYPE_F32);
    cr_expect_eq(precision.moment, DTYPE_F32);
    cr_expect(precision.has_master);
}

Test(precision, transfers_gradients_as_they_are_unless_told)
{
    struct precision_config config = defaults();
    config.gradients               = DTYPE_BF16;
    cr_expect_eq(init(&config).reduce, DTYPE_BF16);

    config.gradients = DTYPE_F32;
    config.reduce    = DTYPE_BF16;
    cr_expect_eq(init(&config).gradient, DTYPE_F32);
    cr_expect_eq(init(&config).reduce, DTYPE_BF16);
}

Test(precision, keeps_bf16_roles_beside_products_in_fp8)
{
    struct precision_config config = defaults();
    cr_expect_not(init(&config).has_fp8);
    config.compute             = COMPUTE_FP8;
    struct precision precision = init(&config);
    cr_expect(precision.has_fp8);
    cr_expect_eq(precision.weight, DTYPE_BF16);
    cr_expect_eq(precision.activation, DTYPE_BF16);
}

Test(precision, is_fp32_everywhere_in_the_reference_mode)
{
    struct precision_config config = defaults();
    config.compute                 = COMPUTE_FP32;
    struct precision precision     = init(&config);
    cr_expect_eq(precision.weight, DTYPE_F32);
    cr_expect_eq(precision.activation, DTYPE_F32);
    cr_expect_eq(precision.gradient, DTYPE_F32);
    cr_expect_not(precision.has_master);
}

Test(precision, refuses_bf16_roles_in_the_reference_mode)
{
    struct precision_config config = defaults();
    struct precision        precision;
    config.compute = COMPUTE_FP32;
    config.moments = DTYPE_BF16;
    status result  = precision_init(&precision, &config);
    cr_expect_str_eq(result.text,
                     "[precision] compute = fp32 is fp32 everywhere: gradients, reduce and moments cannot be bf16");
    cr_expect_eq(result.exit_code, EXIT_CONFIG);
}
