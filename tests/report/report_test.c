// SPDX-License-Identifier: MIT
// Tests reports of a run as text and as a page, with golden text, hostile text and impossible numbers. Also tests how
// devices are shown in the text report and on the page.
#include <math.h>
#include <stdio.h>

#include "gswbench/report.h"
#include "result_suite.h"

TestSuite(report, .init = open_result, .fini = close_result);

static void expect_lines(report_writer *write, const char *expected)
{
    char *text = fixture_render(write, &result);
    cr_expect_str_eq(text, expected);
    free(text);
}

// Expects that the text report starts with this text.
static void expect_verdict(const char *expected)
{
    char *text = fixture_render(report_write_result, &result);
    cr_expect_eq(strncmp(text, expected, strlen(expected)), 0, "%s", text);
    free(text);
}

static void write_ends(const struct result *run, FILE *file)
{
    report_write_step(run, &run->steps[0], file);
    report_write_step(run, &run->steps[49], file);
}

Test(report, prints_a_step_in_one_line)
{
    expect_lines(write_ends,
                 "completed step: 0, seconds: 21.412, TFLOP/s/device: 169.998, loss: 10.500000, grad_norm: 1.333333\n"
                 "completed step: 49, seconds: 7.000, TFLOP/s/device: 520.000, loss: 9.863636, grad_norm: 1.019231\n");
    result.steps[0].seconds = 0.0123456;
    expect_in(write_ends, "seconds: 0.012346, ");
}

Test(report, prints_a_valid_result)
{
    expect_lines(
        report_write_result,
        "RESULT VALID    50 steps: 10 warm-up, 40 measured\nstep time       6.999 s    95 % CI 6.998 to 7.000, cv "
        "0.0 %, no drift\nthroughput      74 909 tokens/s, 1 170 per GPU\nMFU             52.59 %    published "
        "convention, of 989 TFLOP/s\npublished       6.999 s    we take the same time (a table)\nslowest rank    1 "
        "(dgx-02), computes 6.2 % longer than the median: not judged\nstep times: 0 outliers  p95 7.001  drift "
        "+0.00%/step  last step: 7.000  mean of steps 35-44: 6.999\nThroughput in tokens per "
        "second: 74908.99\nTFLOP/s per device: 520.074 (published)\nModel flops utilization: 52.59%  published 52.59%  "
        "full 52.60%  causal 50.70%  hardware 62.73%\nTime to train 1T tokens in days: 154.51\npublished: 6.999 "
        "(52.59%)  ratio to it: 1.000  source: a table\nranks: slowest 1 "
        "(dgx-02) +0.7% to the fastest  computes longest: rank 1 (dgx-02) +6.2% to its peers\nwhere a step goes: 7.020 "
        "s, traced after the measured steps, on rank 1, ops timed by CUPTI\n  ideal              3.680 s   52.4 %\n  "
        "gemm               1.440 s   20.5 %\n  attention         -0.250 s   -3.6 %\n  memory             0.750 s   "
        "10.7 %\n  recompute          1.000 s   14.2 %\n  optimizer          0.050 s    0.7 %\n  exposed-fsdp       "
        "0.250 s    3.6 %\n  stragglers         0.040 s    0.6 %\n  unexplained        0.060 s    0.9 %\ncollectives "
        "of that step, times in us, bus bandwidth in GB/s\n  kind               axes       ranks count       size      "
        "time    moving      bus     alone      bus predicted  waited for\n  all_gather         fsdp          64   160 "
        "  1.59 GiB      5500      5000      337      4500      374         -  rank 1 (dgx-02), last in 75 %, 25.00 "
        "us\n  all over           fsdp               160 255.00 GiB    880000    800000      337\nmemory of rank 0: "
        "weights 2.01 GiB  gradients 2.01 GiB  optimizer 12.04 GiB  inputs 128.00 KiB  results 4.00 KiB  activations "
        "50.00 GiB  "
        "peak_memory_usage: 70931397120\n");
}

Test(report, names_the_layer_whose_experts_are_used_least_evenly)
{
    struct result_layer layers[] = {
        {.layer = 0, .mean = {1.25, 0.75, 0.03, 0.01}},
        {.layer = 1, .mean = {1.4994, 0.5, 0.1234, 0.0125}},
        {.layer = 2, .mean = {1.1, 0.25, 0.2, 0.02}},
    };
    result.layer_loads      = memory_resize(result.layer_loads, sizeof(layers));
    result.layer_load_count = 3;
    memcpy(result.layer_loads, layers, sizeof(layers));

    expect_in(report_write_result,
              "\nexperts: least balanced in layer 1: maximum load 1.499 and minimum 0.500 of the mean, "
              "dropped 12.34%, auxiliary loss 0.012500\nwhere ");
}

Test(report, prints_no_figure_of_an_invalid_result)
{
    result.steps[7].loss = NAN;
    result_check(&result);

    expect_verdict("RESULT INVALID  50 steps: 10 warm-up, 40 measured\ninvalid: not-finite");
    expect_in(report_write_result, "\ninvalid: not-finite: step 7: loss nan, gradient norm 1.1\n");
    expect_not_in(report_write_result, "Throughput");
    expect_not_in(report_write_result, "utilization");
    expect_not_in(report_write_result, "s per step");
    expect_not_in(report_write_html, "tokens/s");
    expect_not_in(report_write_html, "class=figure>");
    expect_in(report_write_html, "Why this run is <span class=invalid>invalid</span>");
}

Test(report, says_that_an_emulation_is_one)
{
    result.emulation =
        (struct result_emulation){.stages = 8, .executed = 2, .ops = 90, .measured_ops = 80, .measured_share = 0.875};
    struct result_reason reason = {.verdict = VERDICT_EMULATED, .id = "emulated", .rank = -1, .step = -1};
    result_add_reason(&result, &reason);

    result.rank_count = 0;

    expect_verdict(
        "RESULT EMULATED 64 ranks emulated on one device: 2 of 8 stages executed, 87.5 % of the step measured\n");
    expect_in(report_write_result, "\nstep time       6.999 s ");
    expect_not_in(report_write_result, "last step");
    expect_in(report_write_html, "<span>Step time</span><b>6.999 <small>s</small></b><span>simulated</span>");
    expect_in(report_write_html, "<td>attention</td><td class=fall>");
    expect_not_in(report_write_html, "<h2>Loss</h2>");
    expect_not_in(report_write_html, "<svg");
    expect_not_in(report_write_html, "<summary>Ranks</summary>");
    expect_in(report_write_html, "<code>gswbench run --config config.merged.ini --emulate 64</code>");
}

Test(report, says_that_a_proxy_is_one)
{
    result.layers   = 4;
    result.is_proxy = true;

    expect_in(report_write_header, "# proxy  layers 4: values are not those of the full model\n");
    expect_verdict("RESULT VALID    PROXY of 4 layers, 50 steps");
    expect_in(report_write_html, "This run has 4 layers, fewer than the model.");
}

Test(report, shows_the_peak_that_the_utilization_divides_by)
{
    result.published_peak = 989.5e12;
    result_derive(&result);
    expect_in(report_write_header, "989.5 TFLOP/s (as published)\n");
    expect_in(report_write_html, "published; of 989.5 TFLOP/s, as published");
}

Test(report, says_why_there_is_no_utilization)
{
    result.peak = NAN;
    strcpy(result.peak_source, "backend host has no known peak");
    result_derive(&result);

    expect_in(report_write_result, "\nModel flops utilization: none (backend host has no known peak)\n");
    reopen_result();
    result.flops_per_sequence[FLOPS_PUBLISHED] = 3.6e15;    // counts the full square of attention
    result_derive(&result);
    expect_in(report_write_result, "\nModel flops utilization: none (published would exceed the peak)  full 52.60%");
}

Test(report, writes_ranks_and_compute_times_as_csv)
{
    fixture_poison(&result);

    expect_lines(report_write_csv_ranks,
                 "rank,host,node,local_rank,threads,median_seconds,allocated_bytes,processors,foreign_processors,gpu,"
                 "class,compute_seconds,compute_excess,compute_excess_low\n"
                 "0,\"'=cmd(\"\"x\"\"),?<i>\",0,0,2,6.9500000000000002,7,64,0.25,\"\",0,0,0,0\n"
                 "1,\"dgx-02\",0,0,2,7,0,64,,\"\",0,6.5,0.0625,\n");
    expect_lines(report_write_csv_compute_times, "rank,ranks,step,steps,compute_seconds,excess\n"
                                                 "0,1,10,1,6.25,\n"
                                                 "1,63,10,1,6.5,0.0625\n");
}

Test(report, draws_a_page_that_needs_nothing_else)
{
    expect_in(report_write_html, "default-src 'none'; style-src 'unsafe-inline'");
    expect_not_in(report_write_html, "<script");
    expect_not_in(report_write_html, "http://");
    expect_not_in(report_write_html, "https://");
    expect_not_in(report_write_html, "nan");
    expect_not_in(report_write_html, "inf\"");
    expect_in(report_write_html, "<title>step 0: 21.412 s</title>");
}

Test(report, says_why_a_profiled_run_is_not_set_against_the_published_one)
{
    result_add_reason(&result, &(struct result_reason){.verdict = VERDICT_VALID, .id = RESULT_PROFILED});
    result_derive(&result);

    expect_in(report_write_result, "\npublished: not compared, since the run was profiled\n");
    expect_not_in(report_write_result, "ratio to it");
    expect_not_in(report_write_html, "Ratio to published");
}

// In the waterfall each bar starts where the previous part ends. 6.67 of 7.02 s come before the exposed fsdp
// collectives, or before the stall on the host that replaces them.
Test(report, draws_the_waterfall)
{
    double *seconds = result.trace.waterfall.seconds;
    expect_in(report_write_html,
              "<td>attention</td><td class=fall><i class=b0 style=\"margin-left:69.37%;width:3.56%\">");
    expect_in(report_write_html,
              "<td>exposed-fsdp</td><td class=fall><i class=b3 style=\"margin-left:95.01%;width:3.56%\">"
              "</i></td><td class=n>0.250 s</td><td class=n>3.6 %</td>");
    expect_not_in(report_write_html, "<td>bubble</td>");

    seconds[WATERFALL_LAUNCH]       = seconds[WATERFALL_EXPOSED_FSDP];
    seconds[WATERFALL_EXPOSED_FSDP] = 0.0;
    expect_in(report_write_html, "<td>launch</td><td class=fall><i class=b3 style=\"margin-left:95.01%;width:3.56%\">");

    result.trace.source = RESULT_UNTRACED;
    expect_not_in(report_write_html, "class=parts>");
}

Test(report, draws_runs_without_steps_and_without_numbers)
{
    for (int i = 0; i < 50; i++) {
        result.steps[i].loss = NAN;
    }
    expect_in(report_write_html, "</html>");
    expect_not_in(report_write_html, "\"nan");
    expect_not_in(report_write_html, "=nan");

    result.step_count = 0;
    result_derive(&result);
    expect_in(report_write_html, "</html>");
    expect_not_in(report_write_html, "<svg");
}

Test(report, draws_numbers_that_no_run_has)
{
    for (int i = 0; i < STORAGE_COUNT; i++) {
        result.storage_bytes[i] = INT64_MAX;
    }
    result.steps[20].seconds = 1e308;
    result.steps[21].seconds = -1e308;
    result_derive(&result);

    expect_in(report_write_html, "</html>");
    expect_not_in(report_write_html, "=nan");
    expect_not_in(report_write_html, "=inf");
    expect_in(report_write_html, "<td class=n>16.7 %</td>");
}

Test(report, writes_every_step_with_all_digits)
{
    result.step_count               = 2;
    result.steps[1].loss            = NAN;
    result.steps[0].dropped         = 0.125;
    result.steps[0].device_seconds  = 21.375;
    result.steps[0].prediction_loss = 10.25;
    result_derive(&result);

    expect_lines(report_write_csv,
                 "step,phase,seconds,rank0_seconds,slowest_rank,loss,grad_norm,dropped,outlier,device_seconds,"
                 "prediction_loss\n"
                 "0,warmup,21.411999999999999,21.411999999999999,0,10.5,1.3333333333333333,0.125,0,21.375,10.25\n"
                 "1,warmup,7.0999999999999996,7.0999999999999996,1,,1.25,,0,,\n");
}

Test(report, draws_equal_step_times_as_one_bar)
{
    for (int64_t i = 0; i < result.step_count; i++) {
        result.steps[i].seconds = 7;
    }
    expect_in(report_write_html, "height=70.0><title>7.000 to 7.000 s: 40 steps</title>");
}

static char *text;

static void close_text(void)
{
    close_result();
    free(text);
}

TestSuite(report_devices, .init = open_result, .fini = close_text);

static void render(report_writer *write)
{
    free(text);
    text = fixture_render(write, &result);
}

static void expect_line(const char *line)
{
    const char *found = strstr(text, "\ngpus: ");
    cr_assert_not_null(found, "%s", text);
    cr_expect(strncmp(found + 1, line, strlen(line)) == 0 && found[1 + strlen(line)] == '\n', "%s", found);
}

static int count_in(const char *part)
{
    int count = 0;
    for (const char *found = strstr(text, part); found != NULL; found = strstr(found + 1, part)) {
        count++;
    }
    return count;
}

Test(report_devices, of_a_processor_are_not_there)
{
    render(report_write_result);
    cr_expect_eq(count_in("gpus:"), 0);
    render(report_write_html);
    cr_expect_eq(count_in("Devices"), 0);
}

Test(report_devices, are_a_line_of_text)
{
    fixture_observe(&result, 4);
    result.observations[1].gauges[GAUGE_SM_CLOCK].median         = 1740;
    result.observations[2].gauges[GAUGE_SM_CLOCK].median         = 1770;
    result.observations[3].gauges[GAUGE_TEMPERATURE].maximum     = 74;
    result.observations[3].throttles[THROTTLE_IDLE].samples      = 4;
    result.observations[0].throttles[THROTTLE_POWER_CAP].samples = 40;
    result.observations[3].throttles[THROTTLE_POWER_CAP].samples = 1;
    render(report_write_result);
    expect_line("gpus: 4 of 4 observed  SM clock 1755 MHz (1740 to 1770)  power 690 W (690 to 690)  at most 74 C  "
                "power cap 2/4  energy 800 J/step, 655.4 tokens/J");
}

Test(report_devices, are_a_line_that_says_what_is_not_known)
{
    fixture_observe(&result, 2);
    for (int rank = 0; rank < 2; rank++) {
        struct observation *observation = &result.observations[rank];
        observation_init(observation, "");
        observation->rank                          = rank;
        observation->samples                       = 3;
        observation->gauges[GAUGE_SM_CLOCK].median = rank == 0 ? 1755 : NAN;
    }
    result_derive(&result);
    render(report_write_result);
    expect_line("gpus: 2 of 2 observed  SM clock 1755 MHz");
}

Test(report_devices, that_nobody_observed_are_a_reason)
{
    fixture_observe(&result, 2);
    observation_init(&result.observations[0], "libnvidia-ml.so.1 does not open");
    observation_init(&result.observations[1], "libnvidia-ml.so.1 does not open");
    render(report_write_result);
    expect_line("gpus: not observed: libnvidia-ml.so.1 does not open");
    render(report_write_html);
    cr_expect_eq(count_in("<td class=text>libnvidia-ml.so.1 does not open</td>"), 2);
    cr_expect_eq(count_in("Errors and links"), 0);
}

Test(report_devices, are_a_row_of_tables_each)
{
    fixture_observe(&result, 2);
    result.observations[1].counters[COUNTER_ECC_CORRECTED]       = (struct counter_values){5, 9, 4};
    result.observations[1].throttles[THROTTLE_HARDWARE].samples  = 12;
    result.observations[1].throttles[THROTTLE_POWER_CAP].samples = 40;
    render(report_write_html);
    cr_expect_eq(count_in("<th class=n>SM clock, MHz</th>"), 1);
    cr_expect_eq(count_in("<th class=n>power limit, W</th>"), 1);
    cr_expect_eq(count_in("<td>GPU-1</td>"), 1);
    cr_expect_eq(count_in("<td class=n title=\"before 345, after 1980\">1755 <span class=soft>1740&ndash;1980</span>"),
                 2);
    cr_expect_eq(count_in("<td class=n title=\"before 700, after 700\">700</td>"), 2);
    cr_expect_eq(count_in("<td class=text>power cap 40/40, hardware slowdown 12/40</td>"), 1);
    cr_expect_eq(count_in("<td class=n>9 <span class=soft>+4</span></td>"), 1);
    cr_expect_eq(count_in("<th class=n>NVLinks active</th>"), 1);
    cr_expect_eq(count_in("<td class=n>8000</td>"), 2);
}
