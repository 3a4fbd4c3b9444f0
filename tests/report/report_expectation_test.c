// SPDX-License-Identifier: MIT
// The comparison of a run with its expected step.
#include "gswbench/text.h"
#include "result_suite.h"

TestSuite(expectation, .init = open_result, .fini = close_result);

// The fixture's median is 6.999 s, with a traced step of 7.02 s.
static void expect_step(double seconds, double exposed)
{
    result.expectation = (struct result_expectation){
        .profile = "h100-sxm", .step_seconds = seconds, .percent = 2.4, .waterfall = result.trace.waterfall};
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        result.expectation.waterfall.seconds[part] *= 6.999 / 7.02;
    }
    result.expectation.waterfall.seconds[WATERFALL_EXPOSED_FSDP] = exposed;
}

// Exposed fsdp takes 0.25 of 7.02 s, which is 0.249 s of the median.
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
