// SPDX-License-Identifier: MIT
// Tests derived numbers against the published table, and the verdicts on synthetic runs.
#include "gswbench/result.h"

#include <math.h>

#include "result_suite.h"
#include "layouts.h"

TestSuite(result, .init = open_result, .fini = close_result);

Test(result, derives_the_published_figures)
{
    cr_expect(result.figures.step.median == 6.999);
    cr_expect(result.figures.step.low == 6.998 && result.figures.step.high == 7.0);
    cr_expect(result.figures.warmup_steps == 10 && result.figures.measured_steps == 40);
    cr_expect(result.figures.convention == FLOPS_PUBLISHED);
    cr_expect(fabs(result.figures.tokens_per_second - 74908.99) < 0.005);
    cr_expect(fabs(result.figures.tokens_per_second_per_rank - 1170.453) < 0.0005);
    cr_expect(fabs(result.figures.teraflops_per_rank - 520.0743) < 0.00005, "%.6f", result.figures.teraflops_per_rank);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.586) < 0.0005);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_FULL] - 52.604) < 0.0005);
    cr_expect(fabs(result.figures.days_per_trillion_tokens - 154.51) < 0.005);
    cr_expect(result.figures.published_ratio == 1);
    cr_expect(fabs(result.figures.mean_35_44_seconds - 6.999) < 1e-12);
    cr_expect(result.figures.last_step_seconds == 7.0);
}

static void expect_start(const struct tiny *tiny, double loss, double margin)
{
    struct published_config published = {.convention = FLOPS_FULL};
    result_free(&result);
    result_set_plan(&result, &tiny->plan, &published);
    cr_expect_float_eq(result.start_loss, loss, 1e-3, "%g", result.start_loss);
    cr_expect_float_eq(result.start_loss_margin, margin, 1e-3, "%g", result.start_loss_margin);
}

// The model has 40 tokens, hidden size 16 and embeddings with standard deviation 0.2; s is the product of embedding and
// logit scale. The expected initial loss is ln 40 + 16 (0.2 s)^2 / 2. With tied embeddings, the tolerance also covers
// the logit of the input token itself, 16 x 0.2 s.
Test(result, expects_a_start_by_the_scales_of_embeddings_and_logits)
{
    struct tiny tiny = tiny_of("");
    tiny_plan(&tiny);
    expect_start(&tiny, 4.0089, 2.2);
    tiny.plan.model.logit_scale = 0.5;
    expect_start(&tiny, 3.7689, 1.6);
    tiny.plan.model.logit_scale     = 4;
    tiny.plan.model.embedding_scale = 8;
    expect_start(&tiny, 8.8089, 5.8);
    tiny.plan.model.tied = 1;
    expect_start(&tiny, 8.8089, 9.7911);
    plan_free(&tiny.plan);
}

Test(result, takes_the_published_peak_of_the_same_device_only)
{
    result.published_peak = 989.5e12;
    result_derive(&result);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.559) < 0.0005);

    result.published_peak = 312e12;
    result_derive(&result);
    cr_expect(fabs(100 * result.figures.utilization[FLOPS_PUBLISHED] - 52.586) < 0.0005);
}

Test(result, counts_in_full_where_nothing_is_published)
{
    result.flops_per_sequence[FLOPS_PUBLISHED] = NAN;
    result.published_seconds                   = NAN;

    result_derive(&result);

    cr_expect(result.figures.convention == FLOPS_FULL);
    cr_expect(isnan(result.figures.utilization[FLOPS_PUBLISHED]));
    cr_expect(isnan(result.figures.published_ratio));
}

Test(result, knows_steps_35_to_44_only_when_they_ran)
{
    result.step_count = 45;
    result_derive(&result);
    cr_expect(!isnan(result.figures.mean_35_44_seconds));

    result.step_count = 44;
    result_derive(&result);
    cr_expect(isnan(result.figures.mean_35_44_seconds));
}

Test(result, survives_a_run_without_steps)
{
    result.step_count = 0;

    result_derive(&result);

    cr_expect(isnan(result.figures.step.median) && isnan(result.figures.last_step_seconds));
    cr_expect(result.figures.measured_steps == 0);
}

// Ways to change a good run. Each has its own verdict and reason.
enum change {
    NOTHING,
    LOSS_NAN,
    NORM_INFINITE,
    LOSS_ZERO,
    LOSS_NEGATIVE,
    NORM_NEGATIVE,
    NORM_CONSTANT,
    LOSS_CONSTANT,
    LOSS_AT_START,
    LOSS_JUMPS,
    NORM_JUMPS,
    NORM_FALLS,
    REPLICAS,
    CLOCK,
    SECONDS,
    ALL_SECONDS,
    ALLOCATION,
    NOT_COMPUTED
};

static void apply(enum change change, double value)
{
    for (int64_t i = 0; i < result.step_count; i++) {
        result.steps[i].gradient_norm = change == NORM_CONSTANT ? 1.5 : result.steps[i].gradient_norm;
        result.steps[i].gradient_norm *= change == NORM_FALLS && i >= 8 ? 1e-4 : 1;
        result.steps[i].loss    = change == LOSS_CONSTANT ? 9.5 : result.steps[i].loss;
        result.steps[i].seconds = change == ALL_SECONDS ? value : result.steps[i].seconds;
    }
    result.steps[7].loss = change == LOSS_NAN ? NAN : change == LOSS_ZERO ? 0 : result.steps[7].loss;
    result.steps[7].loss *= change == LOSS_NEGATIVE ? -1 : 1;
    result.steps[7].gradient_norm *= change == NORM_NEGATIVE ? -1 : 1;
    result.steps[0].loss += change == LOSS_AT_START ? 1.4 : 0;
    result.steps[8].loss += change == LOSS_JUMPS ? 5.5 : 0;
    result.steps[8].gradient_norm *= change == NORM_JUMPS ? 1e4 : 1;
    result.steps[7].gradient_norm       = change == NORM_INFINITE ? INFINITY : result.steps[7].gradient_norm;
    result.steps[7].seconds             = change == SECONDS ? value : result.steps[7].seconds;
    result.ranks[1].clock_drift_seconds = change == CLOCK ? value : 0.01;    // of a run of 379 s
    result.replica_groups_equal -= change == REPLICAS;
    result.step_allocations = change == ALLOCATION;
    result.computes         = change != NOT_COMPUTED;
}

// A report shows the utilization only if the run is valid, and a result never has one above 1.
static void expect_utilization(bool is_shown)
{
    (is_shown ? expect_in : expect_not_in)(report_write_result, "tilization");
    for (int i = 0; i < FLOPS_COUNT; i++) {
        cr_expect(!(result.figures.utilization[i] > 1), "%g", result.figures.utilization[i]);
    }
}

Test(result, judges_a_run)
{
    static const struct {
        enum change change;
        double      value;
        const char *id;
    } cases[] = {
        {NOTHING, 0, NULL},
        {LOSS_NAN, 0, "not-finite"},
        {NORM_INFINITE, 0, "not-finite"},
        {LOSS_ZERO, 0, "zero"},
        {LOSS_NEGATIVE, 0, "negative"},
        {NORM_NEGATIVE, 0, "negative"},
        {NORM_CONSTANT, 0, "constant"},
        {LOSS_CONSTANT, 0, "constant"},
        {LOSS_AT_START, 0, "loss-at-start"},
        {LOSS_JUMPS, 0, "loss-jumps"},
        {NORM_JUMPS, 0, "norm-jumps"},
        {NORM_FALLS, 0, "norm-jumps"},
        {REPLICAS, 0, "replicas-differ"},
        {CLOCK, 3.9, "clock"},
        {CLOCK, -3.9, "clock"},
        {SECONDS, 0, "clock"},
        {SECONDS, -7, "clock"},
        {SECONDS, INFINITY, "clock"},
        {SECONDS, NAN, "clock"},
        {SECONDS, 4.39, "above-peak"},
        {ALL_SECONDS, 1e-3, "above-peak"},
        {ALLOCATION, 0, "allocation"},
        {NOT_COMPUTED, 0, "not-computed"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        reopen_result();
        apply(cases[i].change, cases[i].value);
        enum verdict verdict = cases[i].id == NULL               ? VERDICT_VALID
                               : cases[i].change == NOT_COMPUTED ? VERDICT_UNVERIFIED
                                                                 : VERDICT_INVALID;

        result_check(&result);

        cr_expect(result.verdict == verdict, "case %zu: %s", i, result_verdict_names[result.verdict]);
        cr_expect(result.exit_code == (cases[i].id == NULL ? 0 : 5), "case %zu: %d", i, (int)result.exit_code);
        expect_utilization(cases[i].id == NULL);
        cr_expect(cases[i].id == NULL ? result.reason_count == 0
                                      : result.reason_count == 1 && strcmp(result.reasons[0].id, cases[i].id) == 0,
                  "case %zu: %d reasons", i, (int)result.reason_count);
    }
}

// A sequence has 2.171e15 FLOPs and a rank computes two per step. At 989e12 FLOP/s this takes at least 4.3903 s.
Test(result, says_why_a_step_is_too_short_for_the_peak)
{
    apply(SECONDS, 4.3);

    result_check(&result);

    cr_assert_eq(result.reason_count, 1);
    cr_expect_str_eq(
        result.reasons[0].message,
        "step 7 took 4.3 s, but its FLOPs take 4.39029 s at the peak of 989 TFLOP/s (published dense bf16)");
    cr_expect_eq(result.reasons[0].step, 7);
}

// The published convention counts more FLOPs than the step executes. At the peak they would take longer than the 4 s
// step; the executed FLOPs take 3.5 s.
Test(result, has_no_utilization_by_a_convention_that_counts_more_than_the_peak_allows)
{
    result.flops_per_sequence[FLOPS_PUBLISHED] = 2.1e15;
    result.flops_per_sequence[FLOPS_HARDWARE]  = 1.73075e15;
    result.flops_per_sequence[FLOPS_CAUSAL]    = 1.4e15;
    for (int64_t i = 0; i < result.step_count; i++) {
        result.steps[i].seconds = 4;
    }

    result_check(&result);

    cr_expect_eq(result.verdict, VERDICT_VALID);
    cr_expect(isnan(result.figures.utilization[FLOPS_PUBLISHED]));
    cr_expect(fabs(result.figures.utilization[FLOPS_HARDWARE] - 0.875) < 1e-12);
    cr_expect(fabs(result.figures.utilization[FLOPS_FULL] - 0.920444) < 1e-6);
}

Test(result, is_not_set_against_the_published_one_where_a_profiler_watched)
{
    cr_expect_eq(result.figures.published_ratio, 1.0);
    result_add_reason(&result, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_PROFILED});
    result_derive(&result);
    cr_expect(isnan(result.figures.published_ratio));
    cr_expect_not(isnan(result.published_seconds));
}

Test(result, has_a_published_figure_on_its_machine_only)
{
    const struct published_config table = {.step_seconds = 7, .mfu_percent = 52};
    result_set_published(&result, &table, true);
    cr_expect_eq(result.published_seconds, 7.0);
    cr_expect_eq(result.published_mfu, 0.52);

    result_set_published(&result, &table, false);
    cr_expect(isnan(result.published_seconds) && isnan(result.published_mfu));
}

Test(result, of_a_proxy_has_no_time_to_a_trillion_tokens)
{
    result_derive(&result);
    cr_expect_float_eq(result.figures.days_per_trillion_tokens, 154.51, 0.01);
    result.is_proxy = true;
    result_derive(&result);
    cr_expect(isnan(result.figures.days_per_trillion_tokens));
}

Test(result, keeps_the_gravest_verdict)
{
    struct result_reason reason = {.verdict = VERDICT_PARTIAL, .id = "stopped"};
    result_add_reason(&result, &reason);
    reason.verdict = VERDICT_DEGRADED;
    result_add_reason(&result, &reason);

    cr_expect(result.verdict == VERDICT_PARTIAL);
    cr_expect(result.reason_count == 2);
}

// Adds routing statistics of four experts in two layers for each step: tokens per expert, dropped token-expert pairs,
// and auxiliary loss. The first layer routes 40 token-expert pairs per step, the second 20.
static void add_routings(int64_t steps)
{
    static const float routings[3][2 * 6] = {
        {10, 10, 10, 10, 0, 0.5f, 5, 5, 5, 5, 0, 0.5f},
        {20, 10, 6, 4, 4, 0.75f, 5, 5, 5, 5, 0, 0.5f},
        {10, 16, 6, 8, 2, 0.25f, 5, 12, 3, 0, 7, 1.5f},
    };
    result_free(&result);
    result = (struct result){.method = RESULT_METHOD, .planned_steps = steps, .planned_warmup = 1};
    result_reserve(&result, steps, 1, 2);
    for (int64_t i = 0; i < steps; i++) {
        result.steps[result.step_count++] = (struct result_step){.index = i, .seconds = 1};
        result_add_routing(&result, routings[i], 4);
    }
}

Test(result, measures_the_load_of_experts)
{
    add_routings(3);
    const struct result_layer *first = &result.layer_loads[0], *second = &result.layer_loads[1];

    cr_expect(fabs(first->last[LOAD_BUSIEST] - 1.6) < 1e-12 && fabs(first->last[LOAD_IDLEST] - 0.6) < 1e-12);
    cr_expect(fabs(first->mean[LOAD_BUSIEST] - 1.8) < 1e-12 && fabs(first->mean[LOAD_IDLEST] - 0.5) < 1e-12);
    cr_expect(fabs(first->last[LOAD_DROPPED] - 0.05) < 1e-12 && fabs(first->mean[LOAD_DROPPED] - 0.075) < 1e-12);
    cr_expect(first->last[LOAD_AUXILIARY] == 0.25 && first->mean[LOAD_AUXILIARY] == 0.5);
    cr_expect(second->layer == 1 && fabs(second->last[LOAD_BUSIEST] - 2.4) < 1e-12);
    cr_expect(second->last[LOAD_IDLEST] == 0 && fabs(second->mean[LOAD_BUSIEST] - 1.7) < 1e-12);
    cr_expect(result.steps[0].dropped == 0 && fabs(result.steps[1].dropped - 4.0 / 60) < 1e-12);
    cr_expect(fabs(result.steps[2].dropped - 9.0 / 60) < 1e-12);
}

Test(result, has_no_mean_load_without_a_measured_step)
{
    add_routings(1);

    cr_expect(result.layer_loads[0].last[LOAD_BUSIEST] == 1);
    cr_expect(isnan(result.layer_loads[0].mean[LOAD_BUSIEST]));
}

Test(result, knows_the_ideal_step_and_the_utilization_by_the_peak_only)
{
    // 128 sequences per step on 64 devices are 2 sequences per device.
    cr_expect_float_eq(result_ideal_seconds(&result, FLOPS_PUBLISHED), 2 * 1.82e15 / 989e12, 1e-12);
    result.peak = NAN;
    result_derive(&result);
    cr_expect(isnan(result_ideal_seconds(&result, FLOPS_FULL)));
    for (int i = 0; i < FLOPS_COUNT; i++) {
        cr_expect(isnan(result.figures.utilization[i]));
    }
    cr_expect(fabs(result.figures.tokens_per_second - 74908.99) < 0.005);
}
