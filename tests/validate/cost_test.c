// SPDX-License-Identifier: MIT
// Tests the estimates of memory and time that verification needs for full-size models.
#include <criterion/criterion.h>

#include "gswbench/validate.h"
#include "layouts.h"

// Plans Llama 3.1 8B on one device with weights, gradients and optimizer state in BF16. Returns the bytes of these.
static double plan_8b(struct tiny *tiny)
{
    tiny_init(tiny);
    layout_apply(tiny, "layers 32; hidden 4096; ffn 14336; heads 32; kv_heads 8; head_dim 128; vocab 128256; sequence "
                       "8192; micro_batch 1; global_batch 1; compute bf16; master 0");
    tiny->precision.gradients = FORMAT_BF16;
    tiny->precision.reduce    = FORMAT_BF16;
    tiny->precision.moments   = FORMAT_BF16;
    tiny_plan(tiny);
    const int64_t *bytes = tiny->plan.storage_bytes;
    return (double)(bytes[STORAGE_WEIGHT] + bytes[STORAGE_GRADIENT] + bytes[STORAGE_OPTIMIZER]);
}

Test(cost, verifying_a_step_of_8b_moves_less_than_three_times_its_state_with_less_than_2_gib_of_the_host)
{
    struct tiny                   tiny;
    double                        state = plan_8b(&tiny);
    const struct validation_setup setup = {.plan = &tiny.plan, .sample_bytes = VALIDATION_SAMPLE_BYTES};

    struct result_verification expected = validation_expect(&setup, true, 2);

    cr_expect_float_eq(state / (1 << 30), 60, 0.5, "%g", state);
    cr_expect_lt(expected.device_bytes, 3 * state, "%g of %g", expected.device_bytes, state);
    cr_expect_gt(expected.device_bytes, 0.5 * state, "%g of %g", expected.device_bytes, state);
    cr_expect_lt(expected.host_bytes, 2.0 * 1024 * 1024 * 1024);
    cr_expect_lt(expected.expected_seconds, 60);
    cr_log_info("state %.3g, moved %.3g, host %.3g, %.3g s", state, expected.device_bytes, expected.host_bytes,
                expected.expected_seconds);
    plan_free(&tiny.plan);
}

Test(cost, light_keeps_nothing_and_full_reads_the_state_twice_more)
{
    struct tiny             tiny;
    double                  state = plan_8b(&tiny);
    struct validation_setup setup = {.plan = &tiny.plan, .sample_bytes = VALIDATION_SAMPLE_BYTES};

    struct result_verification light = validation_expect(&setup, true, 0), quick = validation_expect(&setup, true, 1);
    setup.is_full                   = true;
    struct result_verification full = validation_expect(&setup, true, 1);

    cr_expect_eq(light.device_bytes, 0);
    cr_expect_lt(light.host_bytes, 64 << 20);
    cr_expect_float_eq((full.device_bytes - quick.device_bytes) / state, 2, 0.01);
    plan_free(&tiny.plan);
}
