// SPDX-License-Identifier: MIT
// Two made-up results side by side: figures worked out by hand, and what may not be compared.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comparison_pair.h"

TestSuite(comparison, .fini = close_pair);

Test(comparison, sets_two_runs_against_each_other)
{
    open_pair(0.8);
    strcpy(second.run_id, "20260823T101500Z-0001");
    second.storage_bytes[STORAGE_OPTIMIZER] /= 2;
    second.steps[7].loss *= 1.02;
    second.steps[49].loss *= 0.995;

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.step.verdict, CHANGE_FASTER);
    cr_expect(fabs(comparison.step.speedup - 1.25) < 1e-12);
    cr_expect(fabs(comparison.loss.largest - 0.02) < 1e-12 && comparison.loss.largest_step == 7);
    cr_expect(fabs(comparison.loss.last - 0.005) < 1e-12 && comparison.loss.last_step == 49);
    cr_expect(comparison.gradient_norm.largest == 0);
    cr_expect_eq(comparison.setting_count, 0);
    expect_line(text, "FASTER  speed-up 1.250  [95% CI of the medians: 1.250 to 1.250]  step time -20.0%; "
                      "less than 1.0% would not count\n");
    expect_line(text, "step time, s                                6.999          5.599     -20.0%\n");
    expect_line(text, "# second run 20260823T101500Z-0001 of llama2-70b  precision bf16  ");
    expect_line(text, "tokens/s                                    74909          93636     +25.0%\n");
    expect_line(text, "optimizer                               12.04 GiB       6.02 GiB     -50.0%\n");
    cr_expect_null(strstr(text, "\nweights"));
    expect_line(text, "model FLOPs utilization                    52.59%         65.73%     +25.0%\n");
    expect_line(text, "loss: apart by 2.0000% at most (step 7), by 0.5000% in the last common step (49)\n");
    free(text);
}

Test(comparison, sets_each_precision_against_its_own_peak)
{
    open_pair(0.7);
    strcpy(second.precision, "fp8");
    second.peak = second.published_peak = 1979e12;
    result_add_entry(&first.config, &first.config_count, "precision.compute", "bf16");
    result_add_entry(&second.config, &second.config_count, "precision.compute", "fp8");
    result_derive(&second);

    comparison_init(&comparison, &first, &second, 0.01);

    char  *text   = text_of();
    status result = comparison_check(&comparison);
    cr_expect(!failed(&result), "%s", result.text);
    expect_line(text, "# differs precision.compute: bf16 -> fp8\n");
    expect_line(text, "model FLOPs utilization                    52.59%         37.54%     -28.6%\n");
    expect_line(text, "  of a peak in TFLOP/s                        989           1979    +100.1%\n");
    free(text);
}

Test(comparison, gives_no_interval_of_a_few_steps)
{
    open_pair(0.8);
    first.step_count = second.step_count = 14;
    result_derive(&first);
    result_derive(&second);

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    expect_line(text, "  speed-up 1.250  (too few steps for an interval)  step time -20.0%;");
    free(text);
}

Test(comparison, refuses_results_of_different_jobs)
{
    open_pair(1);
    result_add_entry(&first.config, &first.config_count, "train.recompute", "none");
    result_add_entry(&second.config, &second.config_count, "train.recompute", "full");
    result_add_entry(&second.config, &second.config_count, "parallel.pp", "2");
    second.mesh.world = 128;
    strcpy(second.backend, "host");
    strcpy(first.device, "GPU on, driver 1");
    strcpy(second.device, "GPU one, driver 1");
    strcpy(second.communicator, "local");

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    char  *text   = text_of();
    cr_expect_eq(result.exit_code, EXIT_COMPARE);
    cr_expect_str_eq(
        result.text,
        "these results cannot be compared: backend cuda and host, communicator "
        "mpi and local, device GPU on, driver 1 and GPU one, driver 1, ranks 64 and 128, and 1 more; --force "
        "compares them nevertheless");
    expect_line(text, "# NOT COMPARABLE parallel.pp:  -> 2\n");
    expect_line(text, "# differs train.recompute: none -> full\n");
    free(text);
}

Test(comparison, refuses_every_other_model_batch_and_layout)
{
    static const char *const names[] = {"model.layers",     "model.activation", "parallel.dp",        "parallel.fsdp",
                                        "parallel.tp",      "parallel.cp",      "parallel.ep",        "parallel.pp",
                                        "parallel.vp",      "parallel.zero",    "train.global_batch", "train.sequence",
                                        "train.micro_batch"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        open_pair(1);
        result_add_entry(&first.config, &first.config_count, names[i], "1");
        result_add_entry(&second.config, &second.config_count, names[i], "2");

        comparison_init(&comparison, &first, &second, 0.01);

        status result = comparison_check(&comparison);
        cr_expect_eq(result.exit_code, EXIT_COMPARE, "%s", names[i]);
        close_pair();
    }
}

Test(comparison, lets_the_rest_differ)
{
    static const char *const names[] = {"precision.moments",    "train.recompute", "parallel.tp_overlap",
                                        "parallel.zero_gather", "run.seed",        "model.preset",
                                        "hardware.profile",     "software.x",      "run.output"};
    open_pair(1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        result_add_entry(&first.config, &first.config_count, names[i], "1");
        result_add_entry(&second.config, &second.config_count, names[i], "2");
    }
    strcpy(first.device, "GPU one, driver 1");
    strcpy(second.device, "GPU one, driver 2");
    strcpy(second.version, "0.2.0");
    strcpy(second.compiler, "cc 2");
    result_add_entry(&second.environment, &second.environment_count, "cpu governor", "powersave");

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    cr_expect(!failed(&result), "%s", result.text);
    static const char *const differing[] = {"device",
                                            "version",
                                            "compiler",
                                            "parallel.tp_overlap",
                                            "parallel.zero_gather",
                                            "precision.moments",
                                            "run.seed",
                                            "train.recompute",
                                            "cpu governor"};
    cr_assert_eq(comparison.setting_count, 9);
    for (int i = 0; i < 9; i++) {
        cr_expect_str_eq(comparison.settings[i].name, differing[i]);
    }
}

Test(comparison, refuses_runs_without_figures)
{
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        open_pair(1);
        second.verdict = verdict;

        comparison_init(&comparison, &first, &second, 0.01);

        status result = comparison_check(&comparison);
        cr_expect_eq(failed(&result), verdict != VERDICT_VALID && verdict != VERDICT_DEGRADED, "%d", verdict);
        close_pair();
    }
}

Test(comparison, refuses_runs_that_were_slowed_down_on_purpose)
{
    open_pair(1);
    result_add_reason(&second, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_CHECKED});

    comparison_init(&comparison, &first, &second, 0.01);

    status result = comparison_check(&comparison);
    cr_expect_str_eq(result.text, "these results cannot be compared: slowed down no and checked; "
                                  "--force compares them nevertheless");
}

Test(comparison, says_nothing_where_nothing_was_measured)
{
    open_pair(1);
    second.step_count = 0;
    result_derive(&second);

    comparison_init(&comparison, &first, &second, 0.01);

    char *text = text_of();
    cr_expect_eq(comparison.step.verdict, CHANGE_AMBIGUOUS);
    cr_expect(isnan(comparison.loss.largest));
    expect_line(text, "step time, s                                6.999              -\n");
    cr_expect_null(strstr(text, "nan"));
    free(text);
}

Test(comparison, makes_foreign_texts_safe)
{
    open_pair(1);
    fixture_poison(&second);
    result_add_entry(&second.config, &second.config_count, "model.\x1b[2J", "\x1b[31m");

    comparison_init(&comparison, &first, &second, 0.01);

    char  *text   = text_of();
    status result = comparison_check(&comparison);
    cr_expect_null(strchr(text, '\x1b'));
    cr_expect_null(strchr(result.text, '\x1b'));
    free(text);
}

Test(comparison, is_json_for_programs)
{
    open_pair(0.5);
    strcpy(second.communicator, "nccl");
    char  *text = NULL;
    size_t bytes;
    comparison_init(&comparison, &first, &second, 0.01);

    FILE *file = open_memstream(&text, &bytes);
    cr_assert(comparison_write_json(&comparison, file));
    fclose(file);

    json_t *document = json_loads(text, 0, NULL), *step = json_object_get(document, "step_time");
    cr_expect_str_eq(json_string_value(json_object_get(document, "schema")), "gswbench.comparison/1");
    cr_expect_str_eq(json_string_value(json_object_get(step, "verdict")), "faster");
    cr_expect(json_real_value(json_object_get(step, "speedup")) == 2);
    cr_expect(json_real_value(json_object_get(step, "margin")) == 0.01);
    json_t *setting = json_array_get(json_object_get(document, "settings"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(setting, "second")), "nccl");
    cr_expect(json_is_true(json_object_get(setting, "is_obstacle")));
    cr_expect_not_null(json_object_get(json_object_get(document, "second"), "result"));
    json_decref(document);
    free(text);
}
