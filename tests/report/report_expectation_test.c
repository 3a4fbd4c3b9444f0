// SPDX-License-Identifier: MIT
// The comparison of a run with its expected step.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "result_fixture.h"

// The fixture's median is 6.999 s, with a traced step of 7.02 s.
static struct result expecting(double seconds, double exposed)
{
    struct result result;
    fixture_open(&result);
    result.expectation = (struct result_expectation){
        .profile = "h100-sxm", .step_seconds = seconds, .percent = 2.4, .waterfall = result.trace.waterfall};
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        result.expectation.waterfall.seconds[part] *= 6.999 / 7.02;
    }
    result.expectation.waterfall.seconds[WATERFALL_EXPOSED_FSDP] = exposed;
    return result;
}

static void expect_text(struct result *result, const char *expected)
{
    char *text = fixture_render(report_write_result, result);
    cr_expect_not_null(strstr(text, expected), "no '%s' in\n%s", expected, text);
    free(text);
    result_free(result);
}

Test(expectation, says_by_how_much_the_step_is_longer_and_where)
{
    // Exposed fsdp takes 0.25 of 7.02 s, which is 0.249 s of the median; 0.1 s were expected.
    struct result result = expecting(6.8, 0.1);
    expect_text(&result,
                "expected: 6.800 s +- 2.4 % (h100-sxm), measured 6.999 s: +2.9 %, of which exposed-fsdp +0.149 s\n");
}

Test(expectation, says_where_a_step_is_shorter)
{
    struct result result              = expecting(7.2, 0.5);
    result.expectation.measured_share = 0.984;
    expect_text(&result, "expected: 7.200 s +- 2.4 % (h100-sxm, 98 % of its compute time measured), measured 6.999 s: "
                         "-2.8 %, of which exposed-fsdp -0.251 s\n");
}

Test(expectation, names_no_part_where_none_stands_out_or_none_is_known)
{
    struct result result = expecting(6.8, 0.2492);
    expect_text(&result, "measured 6.999 s: +2.9 %\n");
    result                 = expecting(6.8, 0.1);
    result.trace.source[0] = '\0';
    expect_text(&result, "measured 6.999 s: +2.9 %\n");
}

Test(expectation, says_why_nothing_is_expected)
{
    struct result result;
    fixture_open(&result);
    text_copy(result.expectation.reason, sizeof(result.expectation.reason), "ranks share a device");
    expect_text(&result, "\nexpected: unknown (ranks share a device)\n");
}

Test(expectation, stands_beside_what_the_step_took)
{
    struct result result = expecting(6.8, 0.1);
    char         *html   = fixture_render(report_write_html, &result);
    cr_expect_not_null(strstr(html, "6.800 s +-2.4 %; h100-sxm"));
    cr_expect_not_null(strstr(html, "<td class=n>0.250 s</td><td class=n>3.6 %</td><td class=n>0.100 s</td>"
                                    "<td class=n>+0.150 s</td>"));
    cr_expect_not_null(strstr(
        html, "<td class=n>7.020 s</td><td class=n>100 %</td><td class=n>6.800 s</td><td class=n>+0.220 s</td>"));
    free(html);
    expect_text(&result, "  exposed-fsdp       0.250 s    3.6 %  expected      0.100 s     +0.150 s\n");
}
