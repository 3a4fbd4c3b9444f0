// SPDX-License-Identifier: MIT
// Compares predicted steps with calculations by hand.
#include "line.h"
#include "round_machine.h"
#include "simulated.h"

TestSuite(predict, .init = init_round);

static struct prediction explain(int64_t replicas, int64_t shards, struct predict_explanation *explanation)
{
    struct tiny tiny            = tiny_of("compute bf16");
    tiny.parallel.dp            = replicas;
    tiny.parallel.fsdp          = shards;
    tiny.train.accumulation     = 4;
    struct plan_request request = tiny_request(&tiny, replicas * shards, 0);
    struct prediction   prediction;
    REQUIRE(predict_explain(explanation, &prediction, &request, &given.machine));
    return prediction;
}

Test(predict, accounts_for_every_second_of_a_step)
{
    struct predict_explanation explanation = {.ideal_seconds = 1e-6};
    struct prediction          prediction  = explain(4, 1, &explanation);
    const double              *seconds     = explanation.waterfall.seconds;
    expect_seconds(sum_parts(&explanation.waterfall), prediction.step_seconds);
    cr_expect_eq(seconds[WATERFALL_IDEAL], 1e-6);
    cr_expect(seconds[WATERFALL_GEMM] > 0.0 && seconds[WATERFALL_OPTIMIZER] > 0.0);
    cr_expect_gt(seconds[WATERFALL_EXPOSED_DP], 0.0, "nothing hides the sum of the gradient norm");
    expect_seconds(seconds[WATERFALL_UNEXPLAINED], 0.0);
}

Test(predict, adds_what_the_slowest_of_many_replicas_takes_longer)
{
    // The expected maximum of 4 normally distributed values is 1.03 sigma above the mean. A sum over 4 microbatches
    // halves it.
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct prediction          prediction  = explain(4, 1, &explanation);
    double                     simulated   = prediction.step_seconds - prediction.straggler_seconds;
    cr_expect_float_eq(prediction.straggler_seconds / simulated, 1.03 * 0.012 / 2, 0.0002);
    cr_expect_float_eq(explanation.waterfall.seconds[WATERFALL_STRAGGLERS], prediction.straggler_seconds, 1e-12);
    cr_expect_float_eq(explain(1, 1, &explanation).straggler_seconds, 0.0, 1e-12);

    // Ranks of FSDP groups with two replicas wait for the slowest like plain replicas.
    prediction = explain(2, 2, &explanation);
    simulated  = prediction.step_seconds - prediction.straggler_seconds;
    cr_expect_float_eq(prediction.straggler_seconds / simulated, 1.03 * 0.012 / 2, 0.0002);
}

// In this job only compute takes time, so twice the rate means half the step.
Test(predict, says_how_far_a_step_may_be_off)
{
    struct tiny          tiny = tiny_of("compute bf16; accumulation 16");
    struct predict_range range;
    tiny.train.global_batch     = 16 * tiny.train.micro_batch;
    struct plan_request request = tiny_request(&tiny, 1, 0);
    clear_spreads(hardware_options, &given.hardware);
    given.hardware.memory_bandwidth.value           = 1e30;
    given.hardware.attention_forward.spread_percent = given.hardware.attention_backward.spread_percent = 100.0;
    given.hardware.gemm_efficiency.spread_percent                                                      = 100.0;
    REQUIRE(predict_range(&range, &request, &given.machine));
    cr_assert_eq(range.effect_count, 3);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < range.effect_count; i++) {
        sum += range.effects[i].percent;
        squares += range.effects[i].percent * range.effects[i].percent;
    }
    cr_expect_str_eq(range.effects[0].section, "hardware");
    cr_expect_str_eq(range.effects[0].key, "gemm_efficiency");
    cr_expect_float_eq(sum, -50.0, 1e-6);
    expect_seconds(range.percent * range.percent, squares);
}

// Expects that the prediction of a job needs an unknown value of [hardware], or none if the key is "".
static void expect_unknown(const char *row, const char *key)
{
    struct plan_request request  = layout_request(row);
    const char         *expected = line_of("[hardware] %s is unknown: set it, or use a profile that has it, e.g. --gpu "
                                                   "h100-sxm; gswbench calibrate writes one of this machine",
                                           key);
    cr_expect_str_eq(predict_supports(&request, &given.hardware).text, key[0] != '\0' ? expected : "", "%s", row);
}

Test(predict, asks_for_what_it_does_not_know)
{
    expect_unknown("compute fp32", "peak_fp32");
    given.hardware.peak[RATE_FP32].value   = 1e13;
    given.hardware.peak[RATE_BF16].value   = 0.0;
    given.hardware.network_bandwidth.value = 0.0;
    expect_unknown("compute fp32", "");
    expect_unknown("compute fp8", "peak_bf16");
    given.hardware.peak[RATE_BF16].value = 1e15;
    expect_unknown("compute fp8", "peak_fp8");
    expect_unknown("compute bf16; dp 16", "network_bandwidth");
}
