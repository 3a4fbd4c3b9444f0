// SPDX-License-Identifier: MIT
// Tests the comparison of two synthetic results: numbers that were worked out by hand, and pairs that may not be
// compared.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comparison_pair.h"

TestSuite(comparison, .init = open_pair, .fini = close_pair);

Test(comparison, sets_two_runs_against_each_other)
{
    scale_steps(&second, 0.8);
    strcpy(second.run_id, "20260823T101500Z-0001");
    second.storage_bytes[STORAGE_OPTIMIZER] /= 2;
    second.steps[7].loss *= 1.02;
    second.steps[49].loss *= 0.995;

    compare();
    cr_expect_eq(comparison.step.verdict, CHANGE_FASTER);
    cr_expect(fabs(comparison.step.speedup - 1.25) < 1e-12);
    cr_expect(fabs(comparison.loss.largest - 0.02) < 1e-12 && comparison.loss.largest_step == 7);
    cr_expect(fabs(comparison.loss.last - 0.005) < 1e-12 && comparison.loss.last_step == 49);
    cr_expect(comparison.gradient_norm.largest == 0);
    cr_expect_eq(comparison.setting_count, 0);
    expect_line(
        "FASTER  speed-up 1.250  [95% CI of the medians: 1.250 to 1.250]\nstep time -20.0%; noise limit: 1.0%\n");
    expect_line("step time, s                                6.999          5.599     -20.0%\n");
    expect_line("# second run 20260823T101500Z-0001 of llama2-70b  precision bf16  ");
    expect_line("tokens/s                                    74909          93636     +25.0%\n");
    expect_line("optimizer                               12.04 GiB       6.02 GiB     -50.0%\n");
    expect_no_line("\nweights");
    expect_line("model FLOPs utilization                    52.59%         65.73%     +25.0%\n");
    expect_line("loss: apart by 2.0000% at most (step 7), 0.5000% in the last common step (49)\n");
}

// A run may end with a loss that is not finite. Predictions have no losses.
Test(comparison, compares_losses_of_steps_that_both_have)
{
    second.steps[48].loss *= 1.02;
    second.steps[49].loss = NAN;
    for (int64_t i = 0; i < second.step_count; i++) {
        second.steps[i].gradient_norm = NAN;
    }

    compare();
    expect_line("loss: apart by 2.0000% at most (step 48), 2.0000% in the last common step (48)\n");
    cr_expect(isnan(comparison.gradient_norm.largest) && comparison.gradient_norm.largest_step == -1);
    cr_expect(isnan(comparison.gradient_norm.last) && comparison.gradient_norm.last_step == -1);
}

Test(comparison, says_why_a_result_is_doubtful)
{
    struct result_reason reason = {.verdict = VERDICT_DEGRADED, .id = "foreign-load", .rank = -1, .step = -1};
    result_add_reason(&second, &reason);
    strcpy(reason.id, "unsteady");
    result_add_reason(&second, &reason);
    reason = (struct result_reason){.verdict = VERDICT_VALID, .id = "noted", .rank = -1, .step = -1};
    result_add_reason(&second, &reason);

    compare();
    expect_line("\n# second is DEGRADED: foreign-load, unsteady\n");
    expect_no_line("# first is");
}

Test(comparison, of_predictions_states_their_error)
{
    scale_steps(&second, 0.96);
    first.trace.source = second.trace.source = RESULT_PREDICTED;
    first.expectation.percent                = 2.9;
    second.expectation.percent               = 3.4;

    compare();
    expect_line("\n# both are predictions, +-2.9 % and +-3.4 %, with the same profiles, which share\n"
                "#   most of their error\n");
    first.trace.source = RESULT_MEASURED;
    comparison_free(&comparison);
    free(text);
    compare();
    expect_no_line("both are predictions");
}

Test(comparison, sets_each_precision_against_its_own_peak)
{
    scale_steps(&second, 0.7);
    strcpy(second.precision, "fp8");
    second.peak = second.published_peak = 1979e12;
    set_both("precision.compute", "bf16", "fp8");
    result_derive(&second);

    compare();
    expect_obstacles(NULL);
    expect_line("# differs precision.compute: bf16 -> fp8\n");
    expect_line("model FLOPs utilization                    52.59%         37.54%     -28.6%\n");
    expect_line("  of a peak in TFLOP/s                        989           1979    +100.1%\n");
}

Test(comparison, gives_no_interval_of_a_few_steps)
{
    scale_steps(&second, 0.8);
    first.step_count = second.step_count = 14;
    result_derive(&first);
    result_derive(&second);

    compare();
    expect_line("  speed-up 1.250  (too few steps for an interval)\nstep time -20.0%;");
}

Test(comparison, refuses_results_of_different_machines_and_models)
{
    set_both("train.recompute", "none", "full");
    set_both("model.layers", "80", "79");
    set_both("model.activation", "gelu", "swiglu");
    set_both("train.sequence", "4096", "8192");
    strcpy(second.backend, "host");
    strcpy(first.device, "GPU on, driver 1");
    strcpy(second.device, "GPU one, driver 1");
    strcpy(second.communicator, "local");

    compare();
    expect_obstacles(
        "these results cannot be compared: backend cuda and host, communicator mpi and local, device GPU "
        "on, driver 1 and GPU one, driver 1, model.activation gelu and swiglu, and 2 more; --force compares "
        "them anyway");
    expect_line("# NOT COMPARABLE model.layers: 80 -> 79\n");
    expect_line("# NOT COMPARABLE train.sequence: 4096 -> 8192\n");
    expect_line("# differs train.recompute: none -> full\n");
}

// The second run has twice the global batch. On twice the ranks this is the same work per rank, and on the same ranks
// twice the work.
Test(comparison, sets_steps_of_other_sizes_against_each_other_by_their_tokens)
{
    for (int64_t ranks = 64; ranks <= 128; ranks *= 2) {
        open_pair();
        scale_steps(&second, 1.5);
        second.global_batch *= 2;
        second.mesh.world = ranks;
        result_derive(&second);

        compare();
        expect_obstacles(NULL);
        cr_expect_float_eq(comparison.work, ranks == 64 ? 2.0 : 1.0, 1e-12);
        cr_expect_float_eq(comparison.step.speedup, (ranks == 64 ? 2.0 : 1.0) / 1.5, 1e-9);
        cr_expect_eq(comparison.step.verdict, ranks == 64 ? CHANGE_FASTER : CHANGE_SLOWER);
        cr_expect_eq(strstr(text, "\n# differs ranks: 64 -> 128\n") != NULL, ranks == 128);
        cr_expect_eq(strstr(text, "# a step of the second has 2.000 times the tokens per device") != NULL, ranks == 64);
        expect_no_line("\nloss: apart");
    }
}

static void predict(struct result *result, const char *profile, double seconds, double percent)
{
    result->trace.source = RESULT_PREDICTED;
    strcpy(result->device, profile);
    strcpy(result->backend, "simulated");
    strcpy(result->communicator, "simulated");
    result->verdict             = VERDICT_PREDICTED;
    result->planned_warmup      = 0;
    result->step_count          = 1;
    result->steps[0]            = (struct result_step){.phase = STEP_MEASURE, .seconds = seconds};
    result->expectation.percent = percent;
    result_add_entry(&result->config, &result->config_count, "hardware.profile", profile);
    result_derive(result);
}

// A run takes 7 s where 7.2 s were predicted, -2.9 %. The prediction's standard deviation is first 1 %, then 2 %; only
// a change of more than two standard deviations is a verdict.
Test(comparison, sets_a_run_against_a_prediction_by_its_range)
{
    for (int percent = 1; percent <= 2; percent++) {
        open_pair();
        predict(&second, "h100-sxm", 7.2, percent);

        compare();
        expect_obstacles(NULL);
        cr_expect_eq(comparison.step.verdict, percent == 1 ? CHANGE_SLOWER : CHANGE_AMBIGUOUS);
        cr_expect_float_eq(comparison.step.low, 6.997 / (7.2 * (1 + 0.02 * percent)), 2e-3);
        expect_line("  [by the prediction's range: ");
        expect_line("# second prediction ");
        expect_line("# differs verdict: valid -> predicted\n");
    }
}

// Most of the error of a prediction is specific to the machine profile. So predictions for one machine share it: 2.8 %
// is within the remaining 7.7 %, and 10 % is not. Errors for two machines are independent.
Test(comparison, sets_predictions_against_each_other)
{
    static const struct {
        const char *profile;
        double      seconds;
        int64_t     verdict;
        const char *text;
    } cases[] = {
        {"h100-sxm", 7.0, CHANGE_AMBIGUOUS, "EQUAL WITHIN ERROR  speed-up 1.029  [by the predictions: 0.954 to 1.109]"},
        {"h100-sxm", 6.5, CHANGE_FASTER, "FASTER  speed-up 1.108  [by the predictions: 1.027 to 1.195]"},
        {"h200", 6.5, CHANGE_AMBIGUOUS, "EQUAL WITHIN ERROR  speed-up 1.108  [by the predictions: 0.986 to 1.245]"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool other = strcmp(cases[i].profile, "h200") == 0;
        open_pair();
        predict(&first, "h100-sxm", 7.2, 3);
        predict(&second, cases[i].profile, cases[i].seconds, 3);
        set_both("run.zero_cta", "no", "yes");

        compare();
        char name[64];
        expect_obstacles(NULL);
        cr_expect_eq(comparison.step.verdict, cases[i].verdict);
        expect_line(cases[i].text);
        expect_line("# differs run.zero_cta: no -> yes\n");
        cr_expect_str_eq(comparison_name(&comparison, name, sizeof(name)),
                         other ? "hardware.profile h200, run.zero_cta yes" : "run.zero_cta yes");
    }
}

Test(comparison, names_the_second_result_by_settings_that_fit)
{
    char name[40];
    set_both("parallel.tp", "1", "8");
    result_add_entry(&first.config, &first.config_count, "run.sm_margin", "4");

    compare();
    cr_expect_str_eq(comparison_name(&comparison, name, sizeof(name)), "parallel.tp 8, run.sm_margin unset");
    cr_expect_str_eq(comparison_name(&comparison, name, 30), "parallel.tp 8, run.sm_marg...");
}

// Predictions without an error estimate have no interval, so nothing is known to be equal or different.
Test(comparison, decides_nothing_between_predictions_without_error)
{
    static char  *page;
    static size_t bytes;
    predict(&first, "h100-sxm", 7.2, NAN);
    predict(&second, "h200", 2.4, NAN);

    compare();
    expect_line("\nAMBIGUOUS  speed-up 3.000  (no prediction interval)\nstep time -66.7%;");
    FILE *file = open_memstream(&page, &bytes);
    comparison_write_html(&comparison, 1, file);
    fclose(file);
    cr_expect_not_null(strstr(page, "<div class=\"verdict degraded\">ambiguous</div>"));
    cr_expect_not_null(strstr(page, "<p>Speed-up: no prediction interval. Noise limit: 1.0 %.</p>"), "%s", page);
    cr_expect_null(strstr(page, "nan %"));
    free(page);
}

// Three repeats of a run are compared as one result. It has the median of the middle repeat, and an interval that
// covers the three intervals.
Test(comparison, takes_repeats_for_one_result)
{
    struct result            *runs = memory_allocate(3 * sizeof(*runs));
    struct comparison_repeats repeats;
    static const double       shares[] = {1.02, 0.98, 1.0};
    for (int i = 0; i < 3; i++) {
        fixture_open(&runs[i]);
        scale_steps(&runs[i], shares[i]);
        runs[i].verdict = i == 0 ? VERDICT_DEGRADED : VERDICT_VALID;
    }

    const struct result *middle = comparison_join(runs, 3, &repeats);

    cr_expect_eq(middle->verdict, VERDICT_DEGRADED);    // compare refuses it without --force
    cr_expect_float_eq(middle->figures.step.median, 6.999, 1e-9);
    cr_expect_float_eq(middle->figures.step.low, 0.98 * 6.999, 5e-3);
    cr_expect_float_eq(middle->figures.step.high, 1.02 * 6.999, 5e-3);
    cr_expect_eq(repeats.runs, 3);
    cr_expect_float_eq(repeats.spread, 0.04, 1e-9);
    for (int i = 0; i < 3; i++) {
        result_free(&runs[i]);
    }
    free(runs);
}

Test(comparison, lets_the_rest_differ)
{
    static const char *const names[] = {"precision.moments",    "train.recompute",  "parallel.tp_overlap",
                                        "parallel.zero_gather", "run.seed",         "model.preset",
                                        "hardware.profile",     "software.x",       "run.output",
                                        "parallel.pp",          "train.micro_batch"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        set_both(names[i], "1", "2");
    }
    strcpy(first.device, "GPU one, driver 1");
    strcpy(second.device, "GPU one, driver 2");
    strcpy(second.version, "0.2.0");
    strcpy(second.compiler, "cc 2");
    result_add_entry(&second.environment, &second.environment_count, "cpu governor", "powersave");

    compare();
    expect_obstacles(NULL);
    char found[256] = "";
    for (int64_t i = 0; i < comparison.setting_count; i++) {
        strcat(strcat(found, comparison.settings[i].name), " ");
    }
    cr_expect_str_eq(found, "device version compiler parallel.pp parallel.tp_overlap parallel.zero_gather "
                            "precision.moments run.seed train.micro_batch train.recompute cpu governor ");
}

Test(comparison, refuses_runs_that_are_not_valid)
{
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        open_pair();
        second.verdict = verdict;

        compare();
        status result   = comparison_check(&comparison);
        bool   is_clean = verdict == VERDICT_VALID || verdict == VERDICT_EMULATED || verdict == VERDICT_PREDICTED;
        cr_expect_eq(failed(&result), !is_clean, "%d", verdict);
    }
}

Test(comparison, refuses_runs_that_were_slowed_down_on_purpose)
{
    result_add_reason(&second, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_CHECKED});

    compare();
    expect_obstacles("these results cannot be compared: slowed down no and checked; --force compares them anyway");
}

Test(comparison, says_nothing_where_nothing_was_measured)
{
    second.step_count = 0;
    result_derive(&second);

    compare();
    cr_expect_eq(comparison.step.verdict, CHANGE_AMBIGUOUS);
    cr_expect(isnan(comparison.loss.largest));
    expect_line("step time, s                                6.999              -\n");
    expect_no_line("nan");
}

Test(comparison, makes_foreign_texts_safe)
{
    fixture_poison(&second);
    result_add_entry(&second.config, &second.config_count, "model.\x1b[2J", "\x1b[31m");

    compare();
    status result = comparison_check(&comparison);
    cr_expect_null(strchr(text, '\x1b'));
    cr_expect_null(strchr(result.text, '\x1b'));
}

Test(comparison, is_json_for_programs)
{
    scale_steps(&second, 0.5);
    strcpy(second.communicator, "nccl");
    char  *json = NULL;
    size_t bytes;
    compare();
    FILE *file = open_memstream(&json, &bytes);
    cr_assert(comparison_write_json(&comparison, 1, file));
    fclose(file);

    json_t *document = json_loads(json, 0, NULL), *step = json_object_get(document, "step_time");
    cr_expect_str_eq(json_string_value(json_object_get(document, "schema")), "gswbench.comparison/2");
    cr_expect_str_eq(json_string_value(json_object_get(step, "verdict")), "faster");
    cr_expect(json_real_value(json_object_get(step, "speedup")) == 2);
    cr_expect(json_real_value(json_object_get(step, "margin")) == 0.01);
    json_t *setting = json_array_get(json_object_get(document, "settings"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(setting, "second")), "nccl");
    cr_expect(json_is_true(json_object_get(setting, "is_obstacle")));
    cr_expect_not_null(json_object_get(json_object_get(document, "second"), "result"));
    json_decref(document);
    free(json);
}
