// SPDX-License-Identifier: MIT
// Reports of a run as text and as a page: golden text, hostile text, impossible numbers.
#include "gswbench/report.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result_fixture.h"

static void expect_lines(report_writer *write, const struct result *result, const char *expected)
{
    char *text = fixture_render(write, result);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(report, prints_steps_as_published_logs_do)
{
    struct result result;
    fixture_open(&result);
    char  *text  = NULL;
    size_t bytes = 0;
    FILE  *file  = open_memstream(&text, &bytes);

    report_write_step(&result, &result.steps[0], file);
    report_write_step(&result, &result.steps[49], file);
    fclose(file);

    cr_expect_str_eq(
        text, "completed step: 0, seconds: 21.412, TFLOP/s/device: 169.998, Tokens/s/device: 382.589, total_weights: "
              "524288, loss: 10.500000, grad_norm: 1.333333, phase: warmup, train_step_timing in s: 21.412\n"
              "completed step: 49, seconds: 7.000, TFLOP/s/device: 520.000, Tokens/s/device: 1170.286, total_weights: "
              "524288, loss: 9.863636, grad_norm: 1.019231, phase: measure, train_step_timing in s: 7.000\n");
    free(text);
    result_free(&result);
}

Test(report, keeps_digits_of_short_steps)
{
    struct result result;
    fixture_open(&result);
    result.steps[0].seconds = 0.0123456;
    char  *text             = NULL;
    size_t bytes            = 0;
    FILE  *file             = open_memstream(&text, &bytes);

    report_write_step(&result, &result.steps[0], file);
    fclose(file);

    cr_expect(strstr(text, "seconds: 0.012346, ") != NULL, "%s", text);
    cr_expect(strstr(text, "timing in s: 0.012346\n") != NULL, "%s", text);
    free(text);
    result_free(&result);
}

Test(report, prints_a_valid_result)
{
    struct result result;
    fixture_open(&result);

    expect_lines(
        report_write_result, &result,
        "RESULT VALID  50 steps: 10 warm-up, 40 measured, 0 outliers flagged, 0 dropped\nTraining step time (seconds "
        "per step): 6.999  [95% CI 6.998 7.000]  p95 7.001  cv 0.02%  drift +0.00%/step\nThroughput in tokens per "
        "second: 74908.99\nTFLOP/s per device: 520.074 (published)\nModel flops utilization: 52.59%  published 52.59%  "
        "full 52.60%  causal 50.70%  hardware 62.73%\nTime to train 1T tokens in days: 154.51\nlast step: 7.000  mean "
        "of steps 35-44: 6.999\npublished: 6.999 (52.59%)  ratio to it: 1.000  source: a table\nranks: slowest 1 "
        "(dgx-02) +0.7% to the fastest  computes longest: rank 1 (dgx-02) +6.2% to its peers\nwhere a step goes: 7.020 "
        "s, traced after the measured steps, on rank 1, ops timed by CUPTI\n  ideal              3.680 s   52.4 %\n  "
        "gemm               1.440 s   20.5 %\n  attention         -0.250 s   -3.6 %\n  memory             0.750 s   "
        "10.7 %\n  recompute          1.000 s   14.2 %\n  optimizer          0.050 s    0.7 %\n  exposed-fsdp       "
        "0.250 s    3.6 %\n  stragglers         0.040 s    0.6 %\n  unexplained        0.060 s    0.9 %\ncollectives "
        "of that step, times in us, bus bandwidth in GB/s\n  kind               axes       ranks count       size      "
        "time    moving      bus     alone      bus predicted  waited for\n  all_gather         fsdp          64   160 "
        "  1.59 GiB      5500      5000      337      4500      374         -  rank 1 (dgx-02), last in 75 %, 25.00 "
        "us\n  all over           fsdp               160 255.00 GiB    880000    800000      337\nmemory: weights 2.01 "
        "GiB  gradients 2.01 GiB  optimizer 12.04 GiB  inputs 128.00 KiB  results 4.00 KiB  activations 50.00 GiB  "
        "peak_memory_usage: 70931397120\n");
    result_free(&result);
}

Test(report, names_the_layer_whose_experts_are_used_least_evenly)
{
    struct result_layer layers[] = {
        {.layer = 0, .mean = {1.25, 0.75, 0.03, 0.01}},
        {.layer = 1, .mean = {1.4994, 0.5, 0.1234, 0.0125}},
        {.layer = 2, .mean = {1.1, 0.25, 0.2, 0.02}},
    };
    struct result result;
    fixture_open(&result);
    result.layer_loads      = memory_resize(result.layer_loads, sizeof(layers));
    result.layer_load_count = 3;
    memcpy(result.layer_loads, layers, sizeof(layers));

    char *text = fixture_render(report_write_result, &result);

    cr_expect(strstr(text, "\nexperts: least balanced in layer 1: maximum load 1.499 and minimum 0.500 of the mean, "
                           "dropped 12.34%, auxiliary loss 0.012500\nwhere ") != NULL,
              "%s", text);
    free(text);
    result_free(&result);
}

Test(report, prints_no_figure_of_an_invalid_result)
{
    struct result result;
    fixture_open(&result);
    result.steps[7].loss = NAN;
    result_check(&result);

    char *text = fixture_render(report_write_result, &result);
    char *html = fixture_render(report_write_html, &result);

    cr_expect(strstr(text, "RESULT INVALID  50 steps") == text, "%s", text);
    cr_expect(strstr(text, "\ninvalid: not-finite: step 7: loss nan, gradient norm 1.1\n") != NULL, "%s", text);
    cr_expect(strstr(text, "Throughput") == NULL && strstr(text, "utilization") == NULL &&
              strstr(text, "s per step") == NULL);
    cr_expect(strstr(html, "tokens/s") == NULL && strstr(html, "class=figure>") == NULL);
    cr_expect(strstr(html, "Why this run is <span class=invalid>invalid</span>") != NULL);
    free(text);
    free(html);
    result_free(&result);
}

Test(report, says_that_an_emulation_is_one)
{
    struct result result;
    fixture_open(&result);
    result.emulation =
        (struct result_emulation){.stages = 8, .executed = 2, .ops = 90, .measured_ops = 80, .measured_share = 0.875};
    struct result_reason reason = {.verdict = VERDICT_EMULATED, .id = "emulated", .rank = -1, .step = -1};
    result_add_reason(&result, &reason);

    result.rank_count = 0;

    char *text = fixture_render(report_write_result, &result);
    char *html = fixture_render(report_write_html, &result);

    cr_expect_not_null(
        strstr(
            text,
            "RESULT EMULATED  64 ranks emulated on one device: 2 of 8 stages executed, 87.5% of the step measured\n"),
        "%s", text);
    cr_expect_not_null(strstr(text, "Training step time (seconds per step): 6.999"), "%s", text);
    cr_expect_null(strstr(text, "last step"), "%s", text);
    cr_expect_not_null(strstr(html, "<span>Step time</span><b>6.999 <small>s</small></b><span>simulated</span>"));
    cr_expect_not_null(strstr(html, "<td>attention</td><td class=fall>"));
    cr_expect(strstr(html, "<h2>Loss</h2>") == NULL && strstr(html, "<svg") == NULL, "no step was trained");
    cr_expect_null(strstr(html, "<summary>Ranks</summary>"));
    free(html);
    free(text);
    result_free(&result);
}

Test(report, says_that_a_proxy_is_one)
{
    struct result result;
    fixture_open(&result);
    result.layers   = 4;
    result.is_proxy = true;

    char *head = fixture_render(report_write_header, &result);
    char *text = fixture_render(report_write_result, &result);
    char *html = fixture_render(report_write_html, &result);

    cr_expect(strstr(head, "# proxy  layers 4: values are not those of the full model\n") != NULL, "%s", head);
    cr_expect(strstr(text, "RESULT VALID PROXY of 4 layers  50 steps") == text, "%s", text);
    cr_expect(strstr(html, "This run has 4 layers, fewer than the model.") != NULL);
    free(head);
    free(text);
    free(html);
    result_free(&result);
}

Test(report, says_why_there_is_no_utilization)
{
    struct result result;
    fixture_open(&result);
    result.peak = NAN;
    strcpy(result.peak_source, "backend host has no known peak");
    result_derive(&result);

    char *text = fixture_render(report_write_result, &result);

    cr_expect(strstr(text, "\nModel flops utilization: none (backend host has no known peak)\n") != NULL, "%s", text);
    free(text);
    result_free(&result);
}

Test(report, makes_hostile_texts_safe)
{
    struct result result;
    fixture_open(&result);
    fixture_poison(&result);

    char *head = fixture_render(report_write_header, &result);
    char *html = fixture_render(report_write_html, &result);

    expect_lines(report_write_csv_ranks, &result,
                 "rank,host,node,local_rank,threads,median_seconds,allocated_bytes,processors,foreign_processors,gpu,"
                 "class,compute_seconds,compute_excess,compute_excess_low\n"
                 "0,\"'=cmd(\"\"x\"\"),?<i>\",0,0,2,6.9500000000000002,7,64,0.25,\"\",0,0,0,0\n"
                 "1,\"dgx-02\",0,0,2,7,0,64,,\"\",0,6.5,0.0625,\n");
    expect_lines(report_write_csv_compute_times, &result,
                 "rank,ranks,step,steps,compute_seconds,excess\n"
                 "0,1,10,1,6.25,\n"
                 "1,63,10,1,6.5,0.0625\n");
    cr_expect(strchr(head, '\x1b') == NULL && strstr(head, "# config </script><b>\"&'?[31m  xxh3:") != NULL, "%s",
              head);
    cr_expect(strstr(html, "</script>") == NULL && strstr(html, "<b>\"") == NULL && strstr(html, "<i>") == NULL);
    cr_expect(strstr(html, "<h1>&lt;/script&gt;&lt;b&gt;&quot;&amp;&#39;?[31m</h1>") != NULL);
    free(head);
    free(html);
    result_free(&result);
}

Test(report, draws_a_page_that_needs_nothing_else)
{
    struct result result;
    fixture_open(&result);

    char *html = fixture_render(report_write_html, &result);

    cr_expect(strstr(html, "default-src 'none'; style-src 'unsafe-inline'") != NULL);
    cr_expect(strstr(html, "<script") == NULL && strstr(html, "http://") == NULL && strstr(html, "https://") == NULL);
    cr_expect(strstr(html, "nan") == NULL && strstr(html, "inf\"") == NULL, "a number that SVG cannot read");
    cr_expect(strstr(html, "<title>step 0: 21.412 s</title>") != NULL);
    free(html);
    result_free(&result);
}

Test(report, says_why_a_profiled_run_is_not_set_against_the_published_one)
{
    struct result result;
    fixture_open(&result);
    result_add_reason(&result, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_PROFILED});
    result_derive(&result);
    char *text = fixture_render(report_write_result, &result);
    char *html = fixture_render(report_write_html, &result);

    cr_expect(strstr(text, "\npublished: not compared, since the run was profiled\n") != NULL, "%s", text);
    cr_expect(strstr(text, "ratio to it") == NULL);
    cr_expect(strstr(html, "Ratio to published") == NULL);
    free(text);
    free(html);
    result_free(&result);
}

// Each part starts at the end of the previous one: 6.67 of 7.02 s come before the exposed fsdp transfers, or before the
// host wait that replaces them.
Test(report, draws_the_waterfall)
{
    struct result result;
    fixture_open(&result);
    char *html = fixture_render(report_write_html, &result);

    result.trace.waterfall.seconds[WATERFALL_LAUNCH]       = result.trace.waterfall.seconds[WATERFALL_EXPOSED_FSDP];
    result.trace.waterfall.seconds[WATERFALL_EXPOSED_FSDP] = 0.0;
    char *waiting                                          = fixture_render(report_write_html, &result);
    result.trace.source[0]                                 = '\0';
    char *without                                          = fixture_render(report_write_html, &result);

    cr_expect(strstr(html, "<td>attention</td><td class=fall><i class=b0 style=\"margin-left:69.37%;width:3.56%\">") !=
              NULL);
    cr_expect(strstr(html, "<td>exposed-fsdp</td><td class=fall><i class=b3 style=\"margin-left:95.01%;width:3.56%\">"
                           "</i></td><td class=n>0.250 s</td><td class=n>3.6 %</td>") != NULL);
    cr_expect(strstr(html, "<td>bubble</td>") == NULL);
    cr_expect(strstr(waiting, "<td>launch</td><td class=fall><i class=b3 style=\"margin-left:95.01%;width:3.56%\">") !=
              NULL);
    cr_expect(strstr(without, "class=parts>") == NULL);
    free(html);
    free(waiting);
    free(without);
    result_free(&result);
}

Test(report, draws_runs_without_steps_and_without_numbers)
{
    struct result result;
    fixture_open(&result);
    for (int i = 0; i < 50; i++) {
        result.steps[i].loss = NAN;
    }
    char *blank       = fixture_render(report_write_html, &result);
    result.step_count = 0;
    result_derive(&result);
    char *empty = fixture_render(report_write_html, &result);

    cr_expect(strstr(blank, "</html>") != NULL && strstr(blank, "\"nan") == NULL && strstr(blank, "=nan") == NULL);
    cr_expect(strstr(empty, "</html>") != NULL && strstr(empty, "<svg") == NULL);
    free(blank);
    free(empty);
    result_free(&result);
}

Test(report, draws_numbers_that_no_run_has)
{
    struct result result;
    fixture_open(&result);
    for (int i = 0; i < STORAGE_COUNT; i++) {
        result.storage_bytes[i] = INT64_MAX;
    }
    result.steps[20].seconds = 1e308;
    result.steps[21].seconds = -1e308;
    result_derive(&result);

    char *html = fixture_render(report_write_html, &result);

    cr_expect(strstr(html, "</html>") != NULL && strstr(html, "=nan") == NULL && strstr(html, "=inf") == NULL);
    cr_expect(strstr(html, "<td class=n>16.7 %</td>") != NULL);
    free(html);
    result_free(&result);
}

Test(report, writes_every_step_with_all_digits)
{
    struct result result;
    fixture_open(&result);
    result.step_count               = 2;
    result.steps[1].loss            = NAN;
    result.steps[0].dropped         = 0.125;
    result.steps[0].device_seconds  = 21.375;
    result.steps[0].prediction_loss = 10.25;
    result_derive(&result);

    expect_lines(report_write_csv, &result,
                 "step,phase,seconds,rank0_seconds,slowest_rank,loss,grad_norm,dropped,outlier,device_seconds,"
                 "prediction_loss\n"
                 "0,warmup,21.411999999999999,21.411999999999999,0,10.5,1.3333333333333333,0.125,0,21.375,10.25\n"
                 "1,warmup,7.0999999999999996,7.0999999999999996,1,,1.25,,0,,\n");
    result_free(&result);
}
