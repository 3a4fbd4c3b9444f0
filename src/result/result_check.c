// SPDX-License-Identifier: MIT
// Checks the numbers that a run recorded. Its figures are printed as a result only if every check passes. Also decides
// whether a machine passes the acceptance test: compares the step time of a run with the expected step time.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/status.h"
#include "gswbench/text.h"
#include "internal.h"

static const double NORM_JUMP = 1000;    // the gradient norm may grow or shrink by this factor per step

__attribute__((format(printf, 5, 6))) static void add(struct result *result, enum verdict verdict, const char *id,
                                                      int64_t step, const char *format, ...)
{
    struct result_reason reason = {.verdict = verdict, .rank = -1, .step = step};
    va_list              arguments;
    if (result_find_reason(result, id) != NULL) {    // the run has already reported this reason, with its rank
        return;
    }
    text_copy(reason.id, sizeof(reason.id), id);
    va_start(arguments, format);
    vsnprintf(reason.message, sizeof(reason.message), format, arguments);
    va_end(arguments);
    result_add_reason(result, &reason);
}

// Requires a finite, positive loss and gradient norm in every step; reports only the first violation.
static bool check_values(struct result *result)
{
    for (int64_t i = 0; i < result->step_count; i++) {
        double      loss = result->steps[i].loss, norm = result->steps[i].gradient_norm;
        const char *id = !isfinite(loss) || !isfinite(norm) ? "not-finite"
                         : loss < 0 || norm < 0             ? "negative"
                         : loss == 0 || norm == 0           ? "zero"
                                                            : NULL;
        if (id != NULL) {
            add(result, VERDICT_INVALID, id, i, "step %" PRId64 ": loss %g, gradient norm %g", i, loss, norm);
            return false;
        }
    }
    return true;
}

// Finds values that only a wrong computation gives: a loss of the first step that initial weights cannot give, or a
// jump of loss or gradient norm that no learning rate causes.
static void check_curve(struct result *result)
{
    const struct result_step *steps = result->steps;
    double                    start = result->start_loss, margin = result->start_loss_margin;
    bool                      is_drawn = !(result->checkpoint.load_bytes > 0);
    if (is_drawn && result->step_count > 0 && !(fabs(steps[0].loss - start) <= margin)) {
        add(result, VERDICT_INVALID, "loss-at-start", 0, "step 0: loss %g, but initial weights give %.4g +- %.2g",
            steps[0].loss, start, margin);
    }
    for (int64_t i = 1; i < result->step_count; i++) {
        if (!(fabs(steps[i].loss - steps[i - 1].loss) <= start / 2)) {
            add(result, VERDICT_INVALID, "loss-jumps", i,
                "step %" PRId64 ": loss %g after %g, a jump of more than half of the first loss", i, steps[i].loss,
                steps[i - 1].loss);
            return;
        }
        double ratio = steps[i].gradient_norm / steps[i - 1].gradient_norm;
        if (!(ratio <= NORM_JUMP && ratio >= 1 / NORM_JUMP)) {
            add(result, VERDICT_INVALID, "norm-jumps", i, "step %" PRId64 ": gradient norm %g after %g", i,
                steps[i].gradient_norm, steps[i - 1].gradient_norm);
            return;
        }
    }
}

// Requires loss and gradient norm to change. Every step sees new tokens, so values that never change were not computed
// by the steps.
static void check_change(struct result *result)
{
    bool loss_changes = false, norm_changes = false;
    for (int64_t i = 1; i < result->step_count; i++) {
        loss_changes |= result->steps[i].loss != result->steps[0].loss;
        norm_changes |= result->steps[i].gradient_norm != result->steps[0].gradient_norm;
    }
    if (result->step_count > 1 && !(loss_changes && norm_changes)) {
        add(result, VERDICT_INVALID, "constant", -1, "the %s is the same in all %" PRId64 " steps",
            loss_changes ? "gradient norm" : "loss", result->step_count);
    }
}

// Requires step times above 0, and two clocks of each rank that agree on the duration of the run to 1 %. A difference
// of 10 ms is always allowed, because clocks are adjusted in small steps.
static void check_clocks(struct result *result)
{
    for (int64_t i = 0; i < result->step_count; i++) {
        if (!(result->steps[i].seconds > 0 && isfinite(result->steps[i].seconds))) {
            add(result, VERDICT_INVALID, "clock", i, "step %" PRId64 " took %g s", i, result->steps[i].seconds);
            return;
        }
    }
    for (int64_t rank = 0; rank < result->rank_count; rank++) {
        double drift = result->ranks[rank].clock_drift_seconds;
        if (!(fabs(drift) <= fmax(0.01 * result->wall_seconds, 0.01))) {
            add(result, VERDICT_INVALID, "clock", -1,
                "the clocks of rank %" PRId64 " disagree by %.6g s over a run of %.6g s", rank, drift,
                result->wall_seconds);
            return;
        }
    }
}

void result_check_peak(struct result *result)
{
    // A step takes at least the time of its FLOPs at the peak. FLOPS_HARDWARE counts the FLOPs of the executed ops.
    // FLOPS_CAUSAL counts the model's FLOPs with half of the attention matrix, and is known for every result.
    double minimum = fmax(result_ideal_seconds(result, FLOPS_HARDWARE), result_ideal_seconds(result, FLOPS_CAUSAL));
    for (int64_t i = 0; i < result->step_count; i++) {
        if (result->steps[i].seconds > 0 && result->steps[i].seconds < minimum) {
            add(result, VERDICT_INVALID, "above-peak", i,
                "step %" PRId64 " took %.6g s, but its FLOPs take %.6g s at the peak of %.6g TFLOP/s (%.120s)", i,
                result->steps[i].seconds, minimum, result->peak / 1e12, result->peak_source);
            return;
        }
    }
}

void result_check(struct result *result)
{
    result_derive(result);
    result_check_peak(result);
    if (result->computes) {
        if (check_values(result)) {
            check_curve(result);
        }
        check_change(result);
        if (result->replica_groups_equal < result->replica_groups) {
            add(result, VERDICT_INVALID, "replicas-differ", -1,
                "weights differ between the replicas of %" PRId64 " of %" PRId64 " groups after the last step",
                result->replica_groups - result->replica_groups_equal, result->replica_groups);
        }
        if (strcmp(result->verify, "off") == 0) {
            add(result, VERDICT_UNVERIFIED, "verify-off", -1,
                "run.verify = off: the numbers were not verified (light checks ops and collectives in seconds)");
        }
    } else {
        add(result, VERDICT_UNVERIFIED, "not-computed", -1, "backend %s computes no numbers to verify",
            result->backend);
    }
    check_clocks(result);
    if (result->step_allocations > 0) {
        add(result, VERDICT_INVALID, "allocation", -1, "%" PRId64 " allocations of device memory inside steps",
            result->step_allocations);
    }
    devices_check(result);
    quality_check(result);
    static const int codes[VERDICT_COUNT] = {
        [VERDICT_VALID] = EXIT_VALID,     [VERDICT_DEGRADED] = EXIT_VALID,     [VERDICT_EMULATED] = EXIT_VALID,
        [VERDICT_PREDICTED] = EXIT_VALID, [VERDICT_UNVERIFIED] = EXIT_INVALID, [VERDICT_PARTIAL] = EXIT_STOPPED,
        [VERDICT_INVALID] = EXIT_INVALID};
    result->exit_code = codes[result->verdict];
}

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
