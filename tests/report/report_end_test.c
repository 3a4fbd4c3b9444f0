// SPDX-License-Identifier: MIT
// Tests the summary at the end of a run: at most twelve lines of 80 columns, in the order in which a reader asks. Also
// tests the comparison of a run with its expected step, in every report.
#include <stdio.h>

#include "gswbench/text.h"
#include "result_suite.h"

TestSuite(report_end, .init = open_result, .fini = close_result);
TestSuite(expectation, .init = open_result, .fini = close_result);

static void expect_end(const char *expected)
{
    char *text = fixture_render(report_write_end, &result);
    cr_expect_str_eq(text, expected);
    free(text);
}

static void add_reason(enum verdict verdict, const char *id, const char *message)
{
    struct result_reason reason = {.verdict = verdict, .rank = -1, .step = -1};
    strcpy(reason.id, id);
    strcpy(reason.message, message);
    result_add_reason(&result, &reason);
}

Test(report_end, has_the_figures_in_the_order_of_their_worth)
{
    result.ranks[1].excess_low      = -0.01;
    result.expectation.step_seconds = 6.8;
    result.expectation.percent      = 2.4;
    strcpy(result.expectation.profile, "h100-sxm");
    strcpy(result.published_source, "NVIDIA dgxc-benchmarking v25.01.1");
    result.published_seconds = 6.9;
    result_derive(&result);
    expect_end("RESULT VALID    50 steps: 10 warm-up, 40 measured\n"
               "step time       6.999 s    95 % CI 6.998 to 7.000, cv 0.0 %, no drift\n"
               "throughput      74 909 tokens/s, 1 170 per GPU\n"
               "MFU             52.59 %    published convention, of 989 TFLOP/s\n"
               "published       6.900 s    we take 1.4 % longer (NVIDIA dgxc-benchmarking\n"
               "                v25.01.1)\n"
               "expected        6.800 s    +-2.4 %: as it should be\n"
               "slowest rank    1 (dgx-02), computes 6.2 % longer than the median: noise\n");
    result.expectation.step_seconds = 6.5;
    expect_in(report_write_end, "expected        6.500 s    +-2.4 %: we take 7.7 % longer\n");
    result.ranks[1].excess_low = 0.05;
    expect_in(report_write_end, "slowest rank    1 (dgx-02), computes 6.2 % longer than the median\n");
    result.published_peak = 989.5e12;
    result_derive(&result);
    expect_in(report_write_end, "convention, of 989.5 TFLOP/s\n");
}

Test(report_end, counts_a_single_step)
{
    result.step_count = result.planned_steps = 1;
    result_derive(&result);
    expect_in(report_write_end, "RESULT VALID    1 step: 1 warm-up, 0 measured\nstep time       -");
}

// 64 GPUs at $3.6 per hour cost $0.064 per second, and a million tokens take 13.3495 seconds.
Test(report_end, shows_what_a_million_tokens_cost)
{
    result_add_entry(&result.config, &result.config_count, "hardware.gpu_hour_dollars", "3.6");
    expect_in(report_write_end, "throughput      74 909 tokens/s, 1 170 per GPU; $0.8544 per million\n");
}

Test(report_end, wraps_reasons_and_counts_those_without_room)
{
    for (int i = 0; i < 6; i++) {
        add_reason(i == 5 ? VERDICT_DEGRADED : VERDICT_VALID, i == 5 ? "foreign-load" : "noted",
                   "h1: other processes used 1.65 of 2 cores during the measured steps (82.7 %), above 10 %: stop "
                   "them, or use other cores");
    }
    char *text  = fixture_render(report_write_end, &result);
    int   lines = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        cr_expect_leq(strlen(line), 80, "%s", line);
        lines++;
    }
    cr_expect_eq(lines, 9, "%d", lines);    // 9 lines here, so run.baseline, the files and one more still fit into 12
    free(text);
    expect_in(report_write_end, "degraded: foreign-load: h1: other processes used 1.65 of 2 cores during the\n"
                                "    measured steps (82.7 %), above 10 %: stop them, or use other cores\n"
                                "5 more reasons: gswbench report, or --verbose\n");
    expect_in(report_write_result, "\nnote: noted: h1: other processes used 1.65 of 2 cores during the measured steps "
                                   "(82.7 %), above 10 %: stop them, or use other cores\n");
}

Test(report_end, of_a_stopped_run_has_the_step_time_so_far)
{
    result.step_count = 45;
    add_reason(VERDICT_PARTIAL, "stopped", "stopped after step 44 by SIGINT");
    result_derive(&result);
    expect_end("RESULT PARTIAL  45 of 50 steps: 10 warm-up, 35 measured\n"
               "so far          6.999 s    over 35 measured steps, unverified\n"
               "partial: stopped: stopped after step 44 by SIGINT\n");
    result.step_count = 5;
    result_derive(&result);
    expect_not_in(report_write_end, "so far");
}

static struct result earlier;

static void write_baseline(const struct result *run, FILE *file)
{
    report_write_baseline(&earlier, run, file);
}

Test(report_end, compares_with_an_earlier_run)
{
    fixture_open(&earlier);
    strcpy(earlier.run_id, "20260822T101500Z-0001");
    for (int i = 0; i < 50; i++) {
        earlier.steps[i].seconds *= 1.25;
    }
    result_derive(&earlier);
    expect_in(write_baseline, "baseline        8.749 s    -20.0 %: faster, noise limit 1.0 % (run\n"
                              "                20260822T101500Z-0001)\n");
    earlier.step_count = 14;
    result_derive(&earlier);
    expect_in(write_baseline, "baseline        8.748 s    -20.0 %: too few steps for a verdict\n");
    add_reason(VERDICT_DEGRADED, "few-steps", "x");
    expect_in(write_baseline, ": one of the two is not VALID\n");
    result_free(&earlier);
}

// The fixture's run has a median step of 6.999 s and a traced step of 7.02 s.
static void expect_step(double seconds, double exposed)
{
    result.expectation = (struct result_expectation){
        .profile = "h100-sxm", .step_seconds = seconds, .percent = 2.4, .waterfall = result.trace.waterfall};
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        result.expectation.waterfall.seconds[part] *= 6.999 / 7.02;
    }
    result.expectation.waterfall.seconds[WATERFALL_EXPOSED_FSDP] = exposed;
}

// fsdp collectives are exposed for 0.25 s of the traced 7.02 s, which is 0.249 s of the median. 0.1 s are expected.
Test(expectation, says_by_how_much_the_step_differs_and_where)
{
    expect_step(6.8, 0.1);
    expect_in(report_write_result,
              "expected: 6.800 s +- 2.4 % (h100-sxm), measured 6.999 s: +2.9 %, of which exposed-fsdp +0.149 s\n");
    expect_step(7.2, 0.5);
    result.expectation.measured_share = 0.984;
    expect_in(report_write_result,
              "expected: 7.200 s +- 2.4 % (h100-sxm, 98 % of its compute time measured), measured 6.999 s: "
              "-2.8 %, of which exposed-fsdp -0.251 s\n");
}

Test(expectation, names_no_part_where_none_stands_out_or_none_is_known)
{
    expect_step(6.8, 0.2492);
    expect_in(report_write_result, "measured 6.999 s: +2.9 %\n");
    expect_step(6.8, 0.1);
    result.trace.source = RESULT_UNTRACED;
    expect_in(report_write_result, "measured 6.999 s: +2.9 %\n");
}

Test(expectation, says_why_nothing_is_expected)
{
    text_copy(result.expectation.reason, sizeof(result.expectation.reason), "ranks share a device");
    expect_in(report_write_result, "\nexpected: unknown (ranks share a device)\n");
}

Test(expectation, stands_beside_what_the_step_took)
{
    expect_step(6.8, 0.1);
    expect_in(report_write_html, "6.800 s +-2.4 %; h100-sxm");
    expect_in(report_write_html, "<td class=n>0.250 s</td><td class=n>3.6 %</td><td class=n>0.100 s</td>"
                                 "<td class=n>+0.150 s</td>");
    expect_in(report_write_html,
              "<td class=n>7.020 s</td><td class=n>100 %</td><td class=n>6.800 s</td><td class=n>+0.220 s</td>");
    expect_in(report_write_result, "  exposed-fsdp       0.250 s    3.6 %  expected      0.100 s     +0.150 s\n");
}
