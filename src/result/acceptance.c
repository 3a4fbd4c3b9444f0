// SPDX-License-Identifier: MIT
// Decides whether a machine passes the acceptance test: compares the step time of a run with the expected step time.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "gswbench/status.h"
#include "internal.h"

const char *const result_acceptance_names[] = {[ACCEPTANCE_NONE]        = "none",
                                               [ACCEPTANCE_ACCEPT]      = "accept",
                                               [ACCEPTANCE_REFUSE]      = "refuse",
                                               [ACCEPTANCE_CANNOT_TELL] = "cannot tell",
                                               NULL};

// Maximum tolerance in percent. With a larger one the verdict is CANNOT TELL, because a machine that lost 13 % of its
// speed (1 - 1 / 1.15) would be accepted.
static const double percent_max = 15.0;

int result_acceptance_code(enum acceptance verdict)
{
    return verdict == ACCEPTANCE_REFUSE ? EXIT_GATE : verdict == ACCEPTANCE_CANNOT_TELL ? EXIT_UNDECIDED : EXIT_VALID;
}

// Returns the message of the reason that set the run's verdict.
static const char *find_message(const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (result->reasons[i].verdict == result->verdict) {
            return result->reasons[i].message;
        }
    }
    return "no reason given";
}

__attribute__((format(printf, 3, 4))) static void decide(struct result *result, enum acceptance verdict,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->acceptance.reason, sizeof(result->acceptance.reason), format, arguments);
    va_end(arguments);
    result->acceptance.verdict = verdict;
}

// Accepts the machine if the step time's confidence interval ends below the upper limit of the tolerated range (faster
// steps always pass), refuses it if the interval starts above this limit, and else cannot tell. The note "uneven"
// (steps vary more than in any public run of that size) turns an acceptance into CANNOT_TELL.
static void compare(struct result *result)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    const struct statistics        *step       = &result->figures.step;
    const struct result_reason     *uneven     = result_find_reason(result, "uneven");
    double                          maximum    = acceptance->expected_seconds * (1.0 + acceptance->percent / 100.0);
    double                          minimum    = acceptance->expected_seconds * (1.0 - acceptance->percent / 100.0);
    if (step->high <= maximum && uneven != NULL) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "%s", uneven->message);
        return;
    }
    decide(result,
           step->low > maximum    ? ACCEPTANCE_REFUSE
           : step->high > maximum ? ACCEPTANCE_CANNOT_TELL
                                  : ACCEPTANCE_ACCEPT,
           "median step %.6g s (95 %% CI %.6g to %.6g); %s: %.6g s (%.6g to %.6g)", step->median, step->low, step->high,
           acceptance->basis, acceptance->expected_seconds, minimum, maximum);
}

// Decides the acceptance test by the first condition that applies. Outliers of the preflight or an INVALID run refuse
// the machine, even if no step time is expected.
void result_accept(struct result *result)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    if (acceptance->outliers > 0) {
        decide(result, ACCEPTANCE_REFUSE, "outliers that the preflight found: %d", (int)acceptance->outliers);
    } else if (result->verdict != VERDICT_VALID) {
        bool is_invalid = result->verdict == VERDICT_INVALID;
        decide(result, is_invalid ? ACCEPTANCE_REFUSE : ACCEPTANCE_CANNOT_TELL, "the run is %s: %.400s",
               is_invalid ? "INVALID" : result_verdict_names[result->verdict], find_message(result));
    } else if (isnan(acceptance->expected_seconds + acceptance->percent)) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "no published or predicted step time for this job on this machine");
    } else if (acceptance->percent > percent_max) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "the %s step time is uncertain by %.1f %%, more than %.0f %%",
               acceptance->basis, acceptance->percent, percent_max);
    } else if (isnan(result->figures.step.low)) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "fewer than 6 steps were measured");
    } else {
        compare(result);
    }
}
