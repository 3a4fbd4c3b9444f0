// SPDX-License-Identifier: MIT
// Limits at which a rank is reported as slow, and at which its result is DEGRADED; and how it is named.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "gswbench/result.h"
#include "observation_fixture.h"
#include "result_fixture.h"

static struct result result;

static void open_result(void)
{
    fixture_open(&result);
}

static void close_result(void)
{
    result_free(&result);
}

TestSuite(rank_check, .init = open_result, .fini = close_result);

// Makes only rank 1 slow. message NULL: no reason is expected.
static void expect_reason(double excess, double low, enum verdict verdict, const char *message)
{
    close_result();
    open_result();
    result.ranks[1].excess     = excess;
    result.ranks[1].excess_low = low;
    result_check(&result);
    cr_expect_eq(result.verdict, verdict, "%s", result_verdict_names[result.verdict]);
    cr_assert_eq(result.reason_count, message != NULL);
    if (message != NULL) {
        cr_expect_str_eq(result.reasons[0].message, message);
        cr_expect_str_eq(result.reasons[0].id, "slow-rank");
        cr_expect_eq(result.reasons[0].rank, 1);
    }
}

Test(rank_check, notes_three_percent_and_degrades_from_five_on)
{
    expect_reason(0.0299, 0.02, VERDICT_VALID, NULL);
    expect_reason(
        0.03, 0.02, VERDICT_VALID,
        "rank 1 (dgx-02) computes 3.0 % longer than the median of the 2 ranks with the same work, at least 2.0 %");
    expect_reason(
        0.0499, 0.02, VERDICT_VALID,
        "rank 1 (dgx-02) computes 5.0 % longer than the median of the 2 ranks with the same work, at least 2.0 %");
    expect_reason(
        0.05, 0.02, VERDICT_DEGRADED,
        "rank 1 (dgx-02) computes 5.0 % longer than the median of the 2 ranks with the same work, at least 2.0 %");
}

Test(rank_check, says_nothing_that_is_in_doubt)
{
    expect_reason(0.5, 0.01, VERDICT_VALID, NULL);
    expect_reason(0.5, NAN, VERDICT_VALID, NULL);
    expect_reason(NAN, NAN, VERDICT_VALID, NULL);
}

Test(rank_check, names_the_slowest_eight_with_their_devices)
{
    fixture_observe(&result, 12);
    for (int i = 0; i < 12; i++) {
        result.ranks[i].class      = i == 11 ? 11 : 0;
        result.ranks[i].excess     = 0.06 + 0.01 * i;
        result.ranks[i].excess_low = 0.05;
    }
    result_check(&result);

    cr_assert_eq(result.reason_count, 8);
    cr_expect_str_eq(result.reasons[0].message, "rank 11 (dgx-06, GPU-11) computes 17.0 % longer than the median of "
                                                "the 1 ranks with the same work, at least 5.0 %");
    cr_expect_str_eq(result.reasons[7].message, "rank 4 (dgx-03, GPU-4) computes 10.0 % longer than the median of the "
                                                "11 ranks with the same work, at least 5.0 %; 4 more are slow");
}

// An injected fault is intended; a profiler and checks slow down the ranks that they inspect.
Test(rank_check, leaves_out_runs_that_were_looked_into)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .id = RESULT_PROFILED, .rank = -1, .step = -1};
    result.ranks[1].excess = result.ranks[1].excess_low = 0.5;
    result_add_reason(&result, &reason);
    result_check(&result);
    cr_expect_eq(result.reason_count, 1);
    strcpy(result.reasons[0].id, RESULT_FAULT);
    result_check(&result);
    cr_expect_eq(result.reason_count, 2);
}
