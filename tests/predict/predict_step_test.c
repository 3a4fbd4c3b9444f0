// SPDX-License-Identifier: MIT
// Tests parts of a predicted step that are not ops: stalls, stragglers, and the error estimate.

#include "round_machine.h"
#include "simulated.h"

enum { REPLICAS = 4, MICROBATCHES = 4 };

// A job of four replicas that trains in FP8 with another framework than gswbench.
static struct {
    struct hardware_config hardware;
    struct software_config software;
    struct machine         machine;
    struct tiny            tiny;
} job = {.machine = {.hardware = &job.hardware, .software = &job.software}};

static void init(void)
{
    job.hardware                      = round_machine();
    job.hardware.peak[RATE_FP8].value = 2e15;
    option_set_defaults(software_options, &job.software);
    job.software.step_overhead.value = 0.025;
    tiny_init(&job.tiny);
    job.tiny.precision.compute  = COMPUTE_FP8;
    job.tiny.parallel.dp        = REPLICAS;
    job.tiny.train.accumulation = MICROBATCHES;
}

TestSuite(predict_step, .init = init);

static struct prediction explain(struct predict_explanation *explanation)
{
    struct plan_request request = tiny_request(&job.tiny, job.tiny.parallel.dp * job.tiny.parallel.pp, 0);
    struct prediction   prediction;
    REQUIRE(predict_explain(explanation, &prediction, &request, &job.machine));
    return prediction;
}

// The gradients of a block are reduced in 7 parts. Each part stalls FP8 GEMMs for half its latency: 15 us plus three
// hops up and three down the chain of four ranks. This happens for two blocks.
Test(predict_step, shows_the_stalls_of_fp8_gemms_among_what_replicas_expose)
{
    struct predict_explanation none = {.ideal_seconds = 0.0}, stalled = {.ideal_seconds = 0.0};
    const double               latency     = 15e-6 + 2 * 3 * 3.4e-6;
    job.software.reduction_parts.value     = 7;
    job.software.fp8_reduction_stall.value = 0.0;
    double before                          = explain(&none).step_seconds;
    job.software.fp8_reduction_stall.value = 0.5;
    struct prediction after                = explain(&stalled);

    expect_seconds(sum_parts(&none.waterfall), before);
    expect_seconds(sum_parts(&stalled.waterfall), after.step_seconds);
    cr_expect_float_eq(stalled.waterfall.seconds[WATERFALL_EXPOSED_DP] - none.waterfall.seconds[WATERFALL_EXPOSED_DP],
                       2 * 3.5 * latency, 1e-9);
}

// The expected maximum of 4 normally distributed values is 1.049 sigma above the mean (Blom). sigma is 1.2 % here, and
// half of that for a sum over 4 microbatches. An all-reduce of FP8 amaxes after each microbatch adds only its own time.
// If replicas reduce gradients after each microbatch, they wait for the slowest each time.
Test(predict_step, lets_replicas_that_reduce_each_microbatch_wait_for_the_slowest_every_time)
{
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    job.software.fp8_synchronization.value = 0.0;
    struct prediction apart                = explain(&explanation);
    double            simulated            = apart.step_seconds - apart.straggler_seconds - 0.025;
    cr_expect_float_eq(apart.straggler_seconds / simulated, 1.049 * 0.012 / 2, 1e-5);

    job.software.fp8_synchronization.value = 1e-3;
    struct prediction rendezvous           = explain(&explanation);
    cr_expect_float_eq(rendezvous.straggler_seconds, apart.straggler_seconds + MICROBATCHES * 1e-3, 1e-9);

    job.software.fp8_synchronization.value = 0.0;
    job.tiny.parallel.gradient_reduce      = GRADIENT_REDUCE_MICROBATCH;
    struct prediction summing              = explain(&explanation);
    simulated                              = summing.step_seconds - summing.straggler_seconds - 0.025;
    cr_expect_float_eq(summing.straggler_seconds / simulated, 1.049 * 0.012, 1e-5);
}

// Two values have a spread, 100 %: the overhead per step, and the jitter of four replicas, which averages out over
// microbatches. The step of 16 microbatches is extrapolated from steps of 1 and 2. Both must count once, for the whole
// step.
Test(predict_step, is_off_by_an_overhead_and_a_wait_as_much_as_they_are_of_the_whole_step)
{
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct predict_range       range;
    layout_apply(&job.tiny, "compute bf16; accumulation 16");
    job.tiny.train.global_batch = 16 * REPLICAS * job.tiny.train.micro_batch;
    clear_spreads(hardware_options, &job.hardware);
    clear_spreads(software_options, &job.software);
    job.hardware.kernel_gap.value        = 1e-5;
    job.hardware.jitter                  = (struct quantity){.value = 0.012, .spread_percent = 100.0};
    job.software.step_overhead           = (struct quantity){.value = 1e-3, .spread_percent = 100.0};
    struct plan_request         request  = tiny_request(&job.tiny, REPLICAS, 0);
    struct prediction           whole    = explain(&explanation);
    const struct predict_effect wanted[] = {
        {"hardware", "jitter", 100.0 * whole.straggler_seconds / whole.step_seconds},
        {"software", "step_overhead", 100.0 * 1e-3 / whole.step_seconds}};

    REQUIRE(predict_range(&range, &request, &job.machine));
    cr_assert_eq(range.effect_count, 2);
    for (int i = 0; i < 2; i++) {
        cr_expect_str_eq(range.effects[i].key, wanted[i].key);
        cr_expect_float_eq(range.effects[i].percent, wanted[i].percent, 1e-3, "%s: %.9g, not %.9g", wanted[i].key,
                           range.effects[i].percent, wanted[i].percent);
    }
}

// If no value has a spread, only the prediction error of the device profile remains. It has another value for models
// with experts.
Test(predict_step, is_off_by_what_no_value_stands_for)
{
    struct predict_range range;
    job.tiny.precision.compute = COMPUTE_BF16;
    clear_spreads(hardware_options, &job.hardware);
    job.hardware.prediction_error        = (struct quantity){.value = 3.0};
    job.hardware.expert_prediction_error = (struct quantity){.value = 9.0};
    for (int64_t experts = 0; experts <= 4; experts += 4) {
        job.tiny.model.experts      = experts;
        job.tiny.model.top_k        = experts / 2;
        struct plan_request request = tiny_request(&job.tiny, REPLICAS, 0);
        REQUIRE(predict_range(&range, &request, &job.machine));
        cr_assert_eq(range.effect_count, 1);
        cr_expect_str_eq(range.effects[0].key, experts > 0 ? "expert_prediction_error" : "prediction_error");
        cr_expect_eq(range.percent, experts > 0 ? 9.0 : 3.0);
    }
}

// Two ranks share four experts. The framework does not compute during an all-to-all, so all-to-alls are exposed.
Test(predict_step, shows_an_exchange_that_compute_waits_for_as_exposed)
{
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct predict_pipeline    pipeline;
    double                     exchanged = 0.0;
    layout_apply(&job.tiny, "compute bf16; experts 4; top_k 2; capacity_factor 1.0; dp 2; ep 2");
    job.software.expert_serial     = true;
    struct prediction   prediction = explain(&explanation);
    struct plan_request request    = tiny_request(&job.tiny, 2, 0);
    REQUIRE(predict_pipeline_init(&pipeline, &request));
    const struct plan *plan = &pipeline.stages[0].plan;
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct cost cost = predict_cost_op(&job.machine, plan, &plan->ops[i]);
        exchanged += cost.is_alone ? cost.seconds : 0.0;
    }
    cr_expect_gt(exchanged, 0.0);
    cr_expect_geq(explanation.waterfall.seconds[WATERFALL_EXPOSED_EP], exchanged);    // includes gradient reductions
    expect_seconds(explanation.waterfall.seconds[WATERFALL_UNEXPLAINED], job.software.step_overhead.value);
    expect_seconds(sum_parts(&explanation.waterfall), prediction.step_seconds);
    predict_pipeline_free(&pipeline);
}

// Links are so slow that another microbatch hides only a part of the all-to-alls. The remainder must be exposed
// communication, not unexplained.
Test(predict_step, shows_what_another_microbatch_does_not_hide_of_exchanges)
{
    double seconds[2], exposed[2];
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        struct predict_explanation explanation = {.ideal_seconds = 0.0};
        init();
        job.hardware.node_bandwidth.value /= 100.0;
        layout_apply(&job.tiny, "compute bf16; experts 4; top_k 2; capacity_factor 1.0; dp 2; ep 2");
        job.software.expert_serial          = true;
        job.tiny.train.overlap_microbatches = overlaps;
        struct prediction prediction        = explain(&explanation);
        seconds[overlaps]                   = prediction.step_seconds;
        exposed[overlaps]                   = explanation.waterfall.seconds[WATERFALL_EXPOSED_EP];
        expect_seconds(explanation.waterfall.seconds[WATERFALL_UNEXPLAINED], job.software.step_overhead.value);
        expect_seconds(sum_parts(&explanation.waterfall), prediction.step_seconds);
    }
    cr_expect_gt(exposed[1], 0.0);
    cr_expect_lt(exposed[1], exposed[0]);
    cr_expect_lt(seconds[1], seconds[0]);
}

// Plans of many GEMM shapes, with and without accumulation, must get the same costs with a cache as without. Some
// shapes use the same slot of the cache.
static void expect_known_gemms(void)
{
    struct gemm_memo    gemms   = {0};
    struct machine      knowing = job.machine;
    struct plan_request request = tiny_request(&job.tiny, job.tiny.parallel.dp, 0);
    struct plan         plan;
    int                 costed = 0;
    knowing.gemms              = &gemms;
    REQUIRE(plan_build_stage(&plan, &request, 0));
    for (int twice = 0; twice < 2; twice++) {
        for (int32_t i = 0; i < plan.op_count; i++) {
            if (plan.ops[i].kind == OP_GEMM) {
                cr_assert_eq(predict_cost_op(&knowing, &plan, &plan.ops[i]).seconds,
                             predict_cost_op(&job.machine, &plan, &plan.ops[i]).seconds, "op %d", i);
                costed++;
            }
        }
    }
    cr_expect_gt(costed, 100);
    plan_free(&plan);
}

Test(predict_step, a_gemm_that_is_known_costs_what_it_would_anew)
{
    job.hardware.gemm_accumulate.value = 500.0;
    expect_known_gemms();
    job.tiny.precision.compute = COMPUTE_BF16;
    expect_known_gemms();
    job.tiny.model.experts = 4;
    job.tiny.model.top_k   = 2;
    expect_known_gemms();
}

// Two layers have one expert on each of two ranks. A launch takes one second on the host, and GPU time is negligible.
static void init_launches(void)
{
    init();
    layout_apply(&job.tiny, "compute bf16; experts 2; top_k 2; auxiliary_loss 0.05; capacity_factor 1.0; zero 1; dp 2; "
                            "ep 2; accumulation 1");
    job.software.expert_launch.value = 1.0;
}

// Returns the launch part of the waterfall. All parts must add up to the step, and only the overhead per step is
// unexplained.
static double launch(void)
{
    struct predict_explanation explanation = {.ideal_seconds = 0.0};
    struct prediction          prediction  = explain(&explanation);
    expect_seconds(sum_parts(&explanation.waterfall), prediction.step_seconds);
    cr_expect_float_eq(explanation.waterfall.seconds[WATERFALL_UNEXPLAINED], job.software.step_overhead.value, 1e-9);
    return explanation.waterfall.seconds[WATERFALL_LAUNCH];
}

// A pass of a layer launches 13 ops and two all-to-alls, whose launches count unless the all-to-all itself sorts its
// rows (expert_nodes). All-to-alls overlap with compute, or (expert_serial) stall it.
Test(predict_step, shows_the_host_in_front_of_ops_and_of_exchanges)
{
    for (int serial = 0; serial < 2; serial++) {
        init_launches();
        job.software.expert_serial = serial;
        cr_expect_float_eq(launch(), 2 * (2 * 13 + 4), 1e-2, "%g", launch());
        job.software.expert_nodes = true;    // the all-to-all sorts its rows itself
        cr_expect_float_eq(launch(), 2 * 2 * 13, 1e-2, "%g", launch());
    }
}

// After the last launch the GPU waits another quarter of a second (launch_alone).
Test(predict_step, shows_what_a_device_waits_for_in_any_case)
{
    init_launches();
    job.software.expert_nodes       = true;
    job.hardware.launch_alone.value = 0.25;
    cr_expect_float_eq(launch(), 2 * 2 * 13 + 0.25, 1e-2, "%g", launch());
}

Test(predict_step, shows_nothing_of_a_host_that_runs_ahead)
{
    init_launches();
    job.software.expert_launch.value = 1e-9;
    cr_expect_lt(launch(), 1e-7);
    job.software.expert_launch.value = 0.0;
    cr_expect_eq(launch(), 0.0);
}

// The hosts of two stages read the routing in each forward pass, which has 17 launches. Stage 1 waits for stage 0 for
// 17 s, while its host launches the 8 ops up to the router. Then stage 1 waits for its own host: 9 + 15 s in the first
// microbatch, and 17 + 15 s in the second.
Test(predict_step, tells_hosts_from_stages_that_wait_for_each_other)
{
    init_launches();
    layout_apply(&job.tiny, "pp 2; accumulation 2; capacity_factor 0.0");
    cr_expect_float_eq(launch(), 9 + 15 + 17 + 15, 1e-2, "%g", launch());
}
