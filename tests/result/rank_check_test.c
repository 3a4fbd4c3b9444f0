// SPDX-License-Identifier: MIT
// Tests the limits above which a slow rank is noted or makes the result DEGRADED, and how the rank is named.
#include <math.h>

#include "observation_fixture.h"
#include "result_suite.h"

TestSuite(rank_check, .init = open_result, .fini = close_result);

// Only rank 1 is slow. Its compute time exceeds the median by the fraction `excess`, which has the lower confidence
// bound `low`. `percent` is the number in the expected reason.
Test(rank_check, notes_three_percent_and_degrades_from_five_on)
{
    static const struct {
        double       excess, low;
        enum verdict verdict;
        const char  *percent;    // NULL: no reason
    } cases[] = {
        {0.0299, 0.02, VERDICT_VALID, NULL},   {0.03, 0.02, VERDICT_VALID, "3.0"}, {0.0499, 0.02, VERDICT_VALID, "5.0"},
        {0.05, 0.02, VERDICT_DEGRADED, "5.0"}, {0.5, 0.01, VERDICT_VALID, NULL},   {0.5, NAN, VERDICT_VALID, NULL},
        {NAN, NAN, VERDICT_VALID, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char message[160];
        snprintf(message, sizeof(message),
                 "rank 1 (dgx-02) computes %s %% longer than the median of the 2 ranks with the same work, at least "
                 "2.0 %%",
                 cases[i].percent != NULL ? cases[i].percent : "");
        reopen_result();
        result.ranks[1].excess     = cases[i].excess;
        result.ranks[1].excess_low = cases[i].low;
        expect_reason(cases[i].verdict, cases[i].percent != NULL ? "slow-rank" : NULL, message);
        cr_expect(cases[i].percent == NULL || result.reasons[0].rank == 1);
    }
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

// Ranks with an injected fault, a profiler or checks are slow for a known reason, so they get no reason.
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
