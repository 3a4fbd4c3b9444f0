// SPDX-License-Identifier: MIT
// Tests the verdict of gswbench accept, which depends on the expected time, the preflight and the run. The worst
// finding decides.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "gswbench/result.h"

// Returns a VALID run with a median step of `seconds` +- 1 %. It is expected to take 10 s +- 3.5 %.
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

// Returns the same run with another verdict and the reason for it.
static struct result judged_run_of(double seconds, enum verdict verdict, const char *id, const char *message)
{
    static struct result_reason reason;
    struct result               result = run_of(seconds);
    reason.verdict = result.verdict = verdict;
    result.reasons                  = &reason;
    result.reason_count             = 1;
    strcpy(reason.id, id);
    strcpy(reason.message, message);
    return result;
}

// If steps vary more than in any public run of that size, even a median as fast as expected proves nothing.
Test(acceptance, cannot_tell_of_uneven_steps)
{
    static const char uneven[] = "p95 of the steps is 30.0 % above the median";
    expect(judged_run_of(10.0, VERDICT_VALID, "uneven", uneven), ACCEPTANCE_CANNOT_TELL, 15, uneven);
    expect(judged_run_of(10.6, VERDICT_VALID, "uneven", uneven), ACCEPTANCE_REFUSE, 6, "median step 10.6 s");
}

Test(acceptance, judges_by_the_preflight_then_by_the_verdict_before_the_time)
{
    struct result outliers       = judged_run_of(10.0, VERDICT_DEGRADED, "", "unsteady");
    outliers.acceptance.outliers = 2;

    expect(outliers, ACCEPTANCE_REFUSE, 6, "outliers that the preflight found: 2");
    expect(judged_run_of(10.0, VERDICT_INVALID, "", "rank 3 is wrong"), ACCEPTANCE_REFUSE, 6,
           "the run is INVALID: rank 3 is wrong");
    expect(judged_run_of(20.0, VERDICT_DEGRADED, "", "unsteady"), ACCEPTANCE_CANNOT_TELL, 15,
           "the run is degraded: unsteady");
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
    unknown                    = run_of(10.0);
    unknown.acceptance.percent = NAN;
    expect(unknown, ACCEPTANCE_CANNOT_TELL, 15, "no published or predicted step time for this job on this machine");
    expect(wide, ACCEPTANCE_CANNOT_TELL, 15, "the predicted step time is uncertain by 15.5 %, more than 15 %");
    expect(few, ACCEPTANCE_CANNOT_TELL, 15, "fewer than 6 steps were measured");
}
