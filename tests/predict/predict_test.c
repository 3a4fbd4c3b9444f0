// SPDX-License-Identifier: MIT
// Compares predicted steps with calculations by hand.

#include "round_machine.h"
#include "simulated.h"

static struct prediction explain_shards(int64_t replicas, int64_t shards, const struct hardware_config *hardware,
                                        struct predict_explanation *explanation)
{
    struct tiny tiny               = tiny_of("compute bf16");
    tiny.parallel.dp               = replicas;
    tiny.parallel.fsdp             = shards;
    tiny.train.accumulation        = 4;
    struct plan_request    request = tiny_request(&tiny, replicas * shards, 0);
    struct prediction      prediction;
    struct software_config software;
    option_set_defaults(software_options, &software);
    REQUIRE(predict_explain(explanation, &prediction, &request,
                            &(struct machine){.hardware = hardware, .software = &software}));
    return prediction;
}

static struct prediction explain_replicas(int64_t replicas, const struct hardware_config *hardware,
                                          struct predict_explanation *explanation)
{
    return explain_shards(replicas, 1, hardware, explanation);
}

Test(predict, accounts_for_every_second_of_a_step)
{
    struct hardware_config     hardware    = round_machine();
    struct predict_explanation explanation = {.ideal_seconds = 1e-6};
    struct prediction          prediction  = explain_replicas(4, &hardware, &explanation);
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
    struct hardware_config     hardware    = round_machine();
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct prediction          prediction  = explain_replicas(4, &hardware, &explanation);
    double                     simulated   = prediction.step_seconds - prediction.straggler_seconds;
    cr_expect_float_eq(prediction.straggler_seconds / simulated, 1.03 * 0.012 / 2, 0.0002);
    cr_expect_float_eq(explanation.waterfall.seconds[WATERFALL_STRAGGLERS], prediction.straggler_seconds, 1e-12);
    cr_expect_float_eq(explain_replicas(1, &hardware, &explanation).straggler_seconds, 0.0, 1e-12);

    // Ranks of FSDP groups with two replicas wait for the slowest like plain replicas.
    prediction = explain_shards(2, 2, &hardware, &explanation);
    simulated  = prediction.step_seconds - prediction.straggler_seconds;
    cr_expect_float_eq(prediction.straggler_seconds / simulated, 1.03 * 0.012 / 2, 0.0002);
}

// In this job only compute takes time, so twice the rate means half the step.
Test(predict, says_how_far_a_step_may_be_off)
{
    struct hardware_config hardware = round_machine();
    struct software_config software;
    struct tiny            tiny = tiny_of("compute bf16; accumulation 16");
    struct predict_range   range;
    tiny.train.global_batch     = 16 * tiny.train.micro_batch;
    struct plan_request request = tiny_request(&tiny, 1, 0);
    option_set_defaults(software_options, &software);
    clear_spreads(hardware_options, &hardware);
    hardware.memory_bandwidth.value           = 1e30;
    hardware.attention_forward.spread_percent = hardware.attention_backward.spread_percent = 100.0;
    hardware.gemm_efficiency.spread_percent                                                = 100.0;
    REQUIRE(predict_range(&range, &request, &(struct machine){.hardware = &hardware, .software = &software}));
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

Test(predict, asks_for_what_it_does_not_know)
{
    struct hardware_config hardware = round_machine();
    struct tiny            tiny     = tiny_of("");
    struct plan_request    request  = tiny_request(&tiny, 1, 0);
    cr_expect_str_eq(predict_supports(&request, &hardware).text,
                     "[hardware] peak_fp32 is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; "
                     "gswbench calibrate writes one of this machine");
    hardware.peak[RATE_FP32].value   = 1e13;
    hardware.peak[RATE_BF16].value   = 0.0;
    hardware.network_bandwidth.value = 0.0;
    cr_expect_str_eq(predict_supports(&request, &hardware).text, "");
    tiny.precision.compute = COMPUTE_FP8;
    request                = tiny_request(&tiny, 1, 0);
    cr_expect_str_eq(predict_supports(&request, &hardware).text,
                     "[hardware] peak_bf16 is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; "
                     "gswbench calibrate writes one of this machine");
    hardware.peak[RATE_BF16].value = 1e15;
    cr_expect_str_eq(predict_supports(&request, &hardware).text,
                     "[hardware] peak_fp8 is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; "
                     "gswbench calibrate writes one of this machine");
    tiny.precision.compute = COMPUTE_BF16;
    tiny.parallel.dp       = 16;
    request                = tiny_request(&tiny, 16, 0);
    cr_expect_str_eq(predict_supports(&request, &hardware).text,
                     "[hardware] network_bandwidth is unknown: set it, or use a profile that has it, e.g. --gpu "
                     "h100-sxm; gswbench calibrate writes one of this machine");
}
