// SPDX-License-Identifier: MIT
// Tests that a prediction is compared with the peak and the published time of the machine that it predicts.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

// 12.27 s/step and 989.5e12 FLOP/s belong to H100 only.
Test(predict_machine, is_what_a_prediction_is_set_against)
{
    static const struct {
        const char *machine;
        double      from, to;
    } cases[] = {{"h100-sxm", 57.0, 62.0}, {"h200", 56.0, 62.0}, {"b200", 41.0, 54.0}, {"a100-80gb", 64.0, 72.0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double percent;
        expect_success(
            line_of("predict --no-range --config llama3.1-8b --ranks 8 --set hardware.profile=%s", cases[i].machine));
        const char *figure = strstr(output, ", MFU ");
        cr_assert_not_null(figure);
        cr_assert_eq(sscanf(figure, ", MFU %lf %%", &percent), 1);
        cr_expect(percent > cases[i].from && percent < cases[i].to, "%s: %g %%", cases[i].machine, percent);
        cr_expect_eq(strstr(output, "\npublished ") != NULL, i == 0, "%s", output);
        cr_expect_null(strstr(output, "MFU -"), "%s", output);
    }
    expect_success("check --config llama3.1-8b --ranks 8 --json --set hardware.profile=b200");
    expect_output("\"derived_mfu\": null");
    expect_output("\"step_s\": null");
}

// A step that takes exactly the time at peak has an MFU of 1. A shorter step has none.
Test(predict_machine, has_no_mfu_above_its_peak)
{
    expect_success(
        "predict --no-range --config llama3.1-8b --layers 1 --ranks 8 --set hardware.gemm_efficiency=1 --set "
        "hardware.gemm_memory_exposed=0 --set published.convention=6n --set hardware.attention_forward=1 --set "
        "hardware.attention_backward=1 --set "
        "model.vocab=1048576 --set train.sequence=512 --set train.micro_batch=4");
    expect_output(" tokens/s, MFU -\n");
    expect_output("warning        no MFU: the FLOPs of this convention exceed the peak in this step\n"
                  "               time\n");
}

// Compares the ten fastest layouts of the sweep and the configured layout with their bounds.
Test(predict_machine, bounds_what_a_sweep_finds)
{
    expect_success("predict --sweep --json --config llama3.1-8b --layers 1 --ranks 2 --set hardware.profile=b200 --set "
                   "train.global_batch=8 --set train.accumulation=auto --set parallel.cp=1 --set parallel.dp=auto");
    int found = 0;
    for (const char *figure = output; (figure = strstr(figure, "\"mfu\": ")) != NULL; figure++) {
        double share;
        cr_assert_eq(sscanf(figure, "\"mfu\": %lf", &share), 1);
        cr_expect(share > 0.05 && share < 0.75, "%g", share);
        found++;
    }
    cr_expect_eq(found, 11);
}
