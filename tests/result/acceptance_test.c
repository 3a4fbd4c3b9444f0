// SPDX-License-Identifier: MIT
// The verdict on a machine, from the expected time, the preflight and the run; the gravest finding decides.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "gswbench/result.h"

// A VALID run with a median of `seconds` +- 1 %, for a row whose expected step takes 10 s +- 3.5 %.
static struct result run_of(double seconds)
{
    return (struct result){
        .figures.step = {.count = 40, .median = seconds, .low = seconds * 0.99, .high = seconds * 1.01},
        .acceptance   = {.basis = "published", .expected_seconds = 10.0, .percent = 3.5}};
}

static void expect(struct result result, enum acceptance verdict, int code, const char *words)
{
    result_accept(&result);
    cr_expect_eq(result.acceptance.verdict, verdict, "%s", result.acceptance.reason);
    cr_expect_eq(result_acceptance_code((enum acceptance)result.acceptance.verdict), code);
    cr_expect(strstr(result.acceptance.reason, words) != NULL, "%s", result.acceptance.reason);
}

Test(acceptance, accepts_what_is_within_the_interval_or_faster)
{
    expect(run_of(10.2), ACCEPTANCE_ACCEPT, 0,
           "median step 10.2 s (95 % CI 10.098 to 10.302); published: 10 s (9.65 to 10.35)");
    expect(run_of(7.0), ACCEPTANCE_ACCEPT, 0, "median step 7 s");
}

Test(acceptance, refuses_what_is_slower_for_certain_and_cannot_tell_where_it_is_not_certain)
{
    expect(run_of(10.6), ACCEPTANCE_REFUSE, 6, "median step 10.6 s");
    expect(run_of(10.3), ACCEPTANCE_CANNOT_TELL, 15, "median step 10.3 s");
}

// A fast median does not outweigh steps that vary more than in any public run of that size.
Test(acceptance, cannot_tell_of_uneven_steps)
{
    struct result_reason reason = {.id = "uneven", .message = "p95 of the steps is 30.0 % above the median"};
    struct result        fast = run_of(10.0), slow = run_of(10.6);
    fast.reasons = slow.reasons = &reason;
    fast.reason_count = slow.reason_count = 1;

    expect(fast, ACCEPTANCE_CANNOT_TELL, 15, "p95 of the steps is 30.0 % above the median");
    expect(slow, ACCEPTANCE_REFUSE, 6, "median step 10.6 s");
}

Test(acceptance, refuses_whom_the_preflight_names_before_all_else)
{
    struct result result       = run_of(10.0);
    result.acceptance.outliers = 2;
    result.verdict             = VERDICT_DEGRADED;

    expect(result, ACCEPTANCE_REFUSE, 6, "outliers that the preflight found: 2");
}

Test(acceptance, refuses_a_run_that_is_invalid_and_says_why)
{
    struct result_reason reason = {.verdict = VERDICT_INVALID, .message = "rank 3 is wrong"};
    struct result        result = run_of(10.0);
    result.verdict              = VERDICT_INVALID;
    result.reasons              = &reason;
    result.reason_count         = 1;

    expect(result, ACCEPTANCE_REFUSE, 6, "the run is INVALID: rank 3 is wrong");
}

Test(acceptance, cannot_tell_of_a_run_under_bad_conditions_even_if_it_is_slow)
{
    struct result_reason reason = {.verdict = VERDICT_DEGRADED, .message = "unsteady"};
    struct result        result = run_of(20.0);
    result.verdict              = VERDICT_DEGRADED;
    result.reasons              = &reason;
    result.reason_count         = 1;

    expect(result, ACCEPTANCE_CANNOT_TELL, 15, "the run is degraded: unsteady");
}

Test(acceptance, cannot_tell_without_a_row_with_a_wide_one_or_with_few_steps)
{
    struct result unknown = run_of(10.0), wide = run_of(10.0), few = run_of(10.0);
    strcpy(unknown.acceptance.basis, "nothing");
    unknown.acceptance.expected_seconds = NAN;
    strcpy(wide.acceptance.basis, "predicted");
    wide.acceptance.percent = 15.5;
    few.figures.step.low = few.figures.step.high = NAN;

    expect(unknown, ACCEPTANCE_CANNOT_TELL, 15, "no published or predicted step time for this job on this machine");
    expect(wide, ACCEPTANCE_CANNOT_TELL, 15, "the predicted step time is uncertain by 15.5 %, more than 15 %");
    expect(few, ACCEPTANCE_CANNOT_TELL, 15, "fewer than 6 steps were measured");
}
