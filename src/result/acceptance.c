// SPDX-License-Identifier: MIT
// Decides whether a machine passes: compares a run's step time with the expected one.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/result.h"
#include "gswbench/status.h"

const char *const result_acceptance_names[] = {[ACCEPTANCE_NONE]        = "none",
                                               [ACCEPTANCE_ACCEPT]      = "accept",
                                               [ACCEPTANCE_REFUSE]      = "refuse",
                                               [ACCEPTANCE_CANNOT_TELL] = "cannot tell",
                                               NULL};

// A tolerance above this would accept a machine that lost an eighth of its speed.
static const double percent_max = 15.0;

int result_acceptance_code(enum acceptance verdict)
{
    switch (verdict) {
    case ACCEPTANCE_REFUSE:
        return EXIT_GATE;
    case ACCEPTANCE_CANNOT_TELL:
        return EXIT_UNDECIDED;
    case ACCEPTANCE_NONE:
    case ACCEPTANCE_ACCEPT:
        return EXIT_VALID;
    }
    return EXIT_VALID;
}

// Returns the message of the reason that set the run's verdict.
static const char *find_reason(const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (result->reasons[i].verdict == result->verdict) {
            return result->reasons[i].message;
        }
    }
    return "no reason given";
}

static void decide(struct result *result, enum acceptance verdict, const char *reason)
{
    result->acceptance.verdict = verdict;
    snprintf(result->acceptance.reason, sizeof(result->acceptance.reason), "%s", reason);
}

// The note on steps that vary more than in any public run of that size; NULL: there is none.
static const char *find_uneven(const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (strcmp(result->reasons[i].id, "uneven") == 0) {
            return result->reasons[i].message;
        }
    }
    return NULL;
}

static void compare(struct result *result)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    const struct statistics        *step       = &result->figures.step;
    double                          maximum    = acceptance->expected_seconds * (1.0 + acceptance->percent / 100.0);
    double                          minimum    = acceptance->expected_seconds * (1.0 - acceptance->percent / 100.0);
    char                            reason[sizeof(acceptance->reason)];
    snprintf(reason, sizeof(reason), "median step %.6g s (95 %% CI %.6g to %.6g); %s: %.6g s (%.6g to %.6g)",
             step->median, step->low, step->high, acceptance->basis, acceptance->expected_seconds, minimum, maximum);
    const char *uneven = find_uneven(result);
    if (step->low > maximum) {
        decide(result, ACCEPTANCE_REFUSE, reason);
    } else if (step->high <= maximum && uneven != NULL) {
        decide(result, ACCEPTANCE_CANNOT_TELL, uneven);
    } else {
        decide(result, step->high > maximum ? ACCEPTANCE_CANNOT_TELL : ACCEPTANCE_ACCEPT, reason);
    }
}

// Checks in order of severity: an outlier or an INVALID run refuses the machine even if no step time is expected.
void result_accept(struct result *result)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    char                            reason[sizeof(acceptance->reason)];
    if (acceptance->outliers > 0) {
        snprintf(reason, sizeof(reason), "outliers that the preflight found: %d", (int)acceptance->outliers);
        decide(result, ACCEPTANCE_REFUSE, reason);
    } else if (result->verdict == VERDICT_INVALID) {
        snprintf(reason, sizeof(reason), "the run is INVALID: %.400s", find_reason(result));
        decide(result, ACCEPTANCE_REFUSE, reason);
    } else if (result->verdict != VERDICT_VALID) {
        snprintf(reason, sizeof(reason), "the run is %s: %.400s", result_verdict_names[result->verdict],
                 find_reason(result));
        decide(result, ACCEPTANCE_CANNOT_TELL, reason);
    } else if (isnan(acceptance->expected_seconds)) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "no published or predicted step time for this job on this machine");
    } else if (acceptance->percent > percent_max) {
        snprintf(reason, sizeof(reason), "the %s step time is uncertain by %.1f %%, more than %.0f %%",
                 acceptance->basis, acceptance->percent, percent_max);
        decide(result, ACCEPTANCE_CANNOT_TELL, reason);
    } else if (isnan(result->figures.step.low)) {
        decide(result, ACCEPTANCE_CANNOT_TELL, "fewer than 6 steps were measured");
    } else {
        compare(result);
    }
}
