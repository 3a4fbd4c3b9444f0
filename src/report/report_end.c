// SPDX-License-Identifier: MIT
// Writes the end of a run: verdict, figures and reasons in a few lines of 80 columns. --verbose and gswbench report
// print the whole report (report_text.c).
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "gswbench/hardware.h"
#include "gswbench/text.h"
#include "internal.h"

// LINES_MOST: maximum number of lines, without the lines "baseline" and "files".
enum { COLUMNS = 80, LABEL_COLUMNS = 16, LINES_MOST = 10 };

struct end {
    FILE *file;
    int   columns;    // INT_MAX: prints every reason, each in one line
    int   lines;
};

__attribute__((format(printf, 3, 4))) static void put(struct end *end, const char *label, const char *format, ...)
{
    char    text[1024], margin[LABEL_COLUMNS + 1];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    snprintf(margin, sizeof(margin), "%*s", LABEL_COLUMNS, "");
    int column = fprintf(end->file, "%-*s ", LABEL_COLUMNS - 1, label);
    end->lines += text_print_wrapped(end->file, text, column, end->columns, margin);
}

// Formats seconds as "12.310 s".
static const char *in_seconds(double seconds)
{
    return report_number(seconds < 1 ? "%.6f s" : "%.3f s", seconds);
}

// Prints the verdict and how the figures came about: measured, emulated or predicted.
static void put_verdict(struct end *end, const struct result *result)
{
    const struct result_emulation *emulation = &result->emulation;
    char                           label[32], proxy[48] = "", planned[32] = "", error[32] = "";
    snprintf(label, sizeof(label), REPORT_VERDICT_PREFIX "%s", report_upper(result_verdict_names[result->verdict]));
    if (result->is_proxy) {
        snprintf(proxy, sizeof(proxy), "PROXY of %" PRId64 " layer%s, ", result->layers,
                 result->layers == 1 ? "" : "s");
    }
    if (emulation->stages > 0) {
        put(end, label,
            "%s%" PRId64 " ranks emulated on one device: %" PRId64 " of %" PRId64
            " stages executed, %.1f %% of the step measured",
            proxy, result->mesh.world, emulation->executed, emulation->stages, 100 * emulation->measured_share);
    } else if (result_is_predicted(result)) {
        if (!isnan(result->expectation.percent)) {
            snprintf(error, sizeof(error), ", +-%.1f %%", result->expectation.percent);
        }
        put(end, label, "%s%" PRId64 " rank%s on %s%s", proxy, result->mesh.world, result->mesh.world == 1 ? "" : "s",
            report_safe(result->expectation.profile), error);
    } else {
        if (result->step_count < result->planned_steps) {
            snprintf(planned, sizeof(planned), " of %" PRId64, result->planned_steps);
        }
        put(end, label, "%s%" PRId64 "%s step%s: %" PRId64 " warm-up, %" PRId64 " measured", proxy, result->step_count,
            planned, result->planned_steps == 1 ? "" : "s", result->figures.warmup_steps,
            result->figures.measured_steps);
    }
}

static const double drift_noted = 0.01, excess_noted = 0.03;    // as in src/result/quality_check.c

static void put_step_time(struct end *end, const struct statistics *step)
{
    char interval[64] = "", variation[32] = "", drift[48] = "";
    if (!isnan(step->low)) {
        snprintf(interval, sizeof(interval), "95 %% CI %s to %s", report_seconds(step->low),
                 report_seconds(step->high));
    }
    if (!isnan(step->variation)) {
        snprintf(variation, sizeof(variation), "%scv %.1f %%", interval[0] != '\0' ? ", " : "", 100 * step->variation);
    }
    if (!isnan(step->trend)) {
        bool is_steady = fabs(step->trend) <= drift_noted;
        snprintf(drift, sizeof(drift), is_steady ? ", no drift" : ", drift %+.1f %%", 100 * step->trend);
    }
    put(end, "step time", "%-10s %s%s%s", in_seconds(step->median), interval, variation, drift);
}

static void put_utilization(struct end *end, const struct result *result)
{
    const struct result_figures *figures    = &result->figures;
    enum flop_convention         convention = (enum flop_convention)figures->convention;
    double                       share      = figures->utilization[convention];
    if (isnan(result->peak)) {
        put(end, "MFU", "%-10s %s", "none", report_safe(result->peak_source));
    } else if (isnan(share)) {
        put(end, "MFU", "%-10s the %s convention would exceed the peak", "none", model_flop_names[convention]);
    } else {
        put(end, "MFU", "%-10.10s %s convention, of %.6g TFLOP/s", report_number("%.2f %%", 100 * share),
            model_flop_names[convention], result_peak(result, convention) / 1e12);
    }
}

static void put_published(struct end *end, const struct result *result)
{
    double      ratio = result->figures.published_ratio;
    const char *time  = in_seconds(result->published_seconds);
    if (fabs(ratio - 1) < 5e-4) {
        put(end, "published", "%-10s we take the same time (%s)", time, report_safe(result->published_source));
    } else if (!isnan(ratio)) {
        put(end, "published", "%-10s we take %.1f %% %s (%s)", time, 100 * fabs(ratio - 1),
            ratio < 1 ? "less" : "longer", report_safe(result->published_source));
    } else if (result_slowed_by(result) != NULL && !isnan(result->published_seconds)) {
        put(end, "published", "%-10s not compared, since the run was %s", time, result_slowed_by(result));
    }
}

// Prints the expected step time and its standard deviation in percent. A difference of up to two standard deviations
// counts as expected.
static void put_expected(struct end *end, const struct result *result)
{
    const struct result_expectation *expectation = &result->expectation;
    if (report_expected_parts(result) == NULL) {
        if (!result_is_predicted(result) && expectation->reason[0] != '\0') {
            bool is_measurable = strstr(expectation->reason, "calibrate") != NULL;
            put(end, "expected", "unknown    %.*s%s", (int)strcspn(expectation->reason, ":"),
                report_safe(expectation->reason), is_measurable ? "; see calibrate" : "");
        }
        return;
    }
    const char *time    = in_seconds(expectation->step_seconds);
    double      percent = 100 * (result->figures.step.median / expectation->step_seconds - 1);
    if (fabs(percent) <= 2 * expectation->percent) {
        put(end, "expected", "%-10s +-%.1f %%: as it should be", time, expectation->percent);
    } else {
        put(end, "expected", "%-10s +-%.1f %%: we take %.1f %% %s", time, expectation->percent, fabs(percent),
            percent < 0 ? "less" : "longer");
    }
}

// Prints the rank with the largest excess of compute time over the ranks with the same work. Step times do not show it,
// because ranks wait for each other.
static void put_slowest_rank(struct end *end, const struct result *result)
{
    const struct result_rank *longest = report_longest_rank(result);
    if (longest == NULL) {
        return;
    }
    const char *doubt = longest->excess_low > 0                                         ? ""
                        : longest->excess < excess_noted || !isnan(longest->excess_low) ? ": noise"
                                                                                        : ": not judged";
    put(end, "slowest rank", "%" PRId64 " (%s), computes %.1f %% longer than the median%s", longest->rank,
        report_safe(longest->host), 100 * longest->excess, doubt);
}

double report_token_dollars(const struct result *result)
{
    double hour = strtod(report_find_setting(result, "hardware.gpu_hour_dollars"), NULL);
    return hardware_token_dollars(hour, result->mesh.world, result->figures.tokens_per_second);
}

static void put_throughput(struct end *end, const struct result *result)
{
    const struct result_figures *figures  = &result->figures;
    double                       dollars  = report_token_dollars(result);
    char                         cost[48] = "";
    if (!isnan(dollars)) {
        snprintf(cost, sizeof(cost), "; $%.4g per million", dollars);
    }
    put(end, "throughput", "%s tokens/s, %s per %s%s", report_grouped(figures->tokens_per_second, ' '),
        report_grouped(figures->tokens_per_second_per_rank, ' '), strcmp(result->backend, "cuda") == 0 ? "GPU" : "rank",
        cost);
}

// Prints the reasons of the verdict, the worst first, up to the limit of lines.
static void put_reasons(struct end *end, const struct result *result)
{
    int64_t put_count = 0;
    for (int verdict = VERDICT_COUNT - 1; verdict >= 0; verdict--) {
        for (int64_t i = 0; i < result->reason_count; i++) {
            const struct result_reason *reason = &result->reasons[i];
            char                        text[512];
            struct text_stream          printed;
            if (reason->verdict != verdict) {
                continue;
            }
            snprintf(text, sizeof(text), "%s: %s: %s",
                     reason->verdict == VERDICT_VALID ? "note" : result_verdict_names[reason->verdict],
                     report_safe(reason->id), report_safe(reason->message));
            text_stream_open(&printed);
            int lines = text_print_wrapped(printed.file, text, 0, end->columns, "    ");
            text_stream_close(&printed);
            int64_t more = result->reason_count - put_count;
            bool    fits = end->columns == INT_MAX || put_count == 0 || end->lines + lines + (more > 1) <= LINES_MOST;
            if (fits) {
                fputs(printed.data, end->file);
                end->lines += lines;
                put_count++;
            }
            free(printed.data);
            if (!fits) {
                fprintf(end->file, "%" PRId64 " more reason%s: gswbench report, or --verbose\n", more,
                        more == 1 ? "" : "s");
                return;
            }
        }
    }
}

static void put_end(struct end *end, const struct result *result)
{
    put_verdict(end, result);
    if (result_is_shown(result)) {
        put_step_time(end, &result->figures.step);
        put_throughput(end, result);
        put_utilization(end, result);
        put_published(end, result);
        put_expected(end, result);
        put_slowest_rank(end, result);
    } else if (result->verdict == VERDICT_PARTIAL && result->figures.step.count > 0) {
        put(end, "so far", "%-10s over %" PRId64 " measured steps, unverified", in_seconds(result->figures.step.median),
            result->figures.step.count);
    }
    put_reasons(end, result);
}

void report_write_baseline(const struct result *earlier, const struct result *result, FILE *file)
{
    enum { THRESHOLD_PERCENT = 1 };
    struct end        end = {.file = file, .columns = COLUMNS};
    struct comparison comparison;
    comparison_init(&comparison, earlier, result, THRESHOLD_PERCENT / 100.0);
    const struct statistics_change *step       = &comparison.step;
    status                          comparable = comparison_check(&comparison);
    const char                     *time       = in_seconds(earlier->figures.step.median);
    if (failed(&comparable)) {
        bool is_doubtful = !result_is_clean(earlier) || !result_is_clean(result);
        put(&end, "baseline", "%-10s not compared: %s", time,
            is_doubtful ? "one of the two is not VALID" : "another job; gswbench compare names the differences");
    } else if (step->is_short) {
        put(&end, "baseline", "%-10s %+.1f %%: too few steps for a verdict", time, 100 * step->relative);
    } else {
        put(&end, "baseline", "%-10s %+.1f %%: %s, noise limit %.1f %% (run %s)", time, 100 * step->relative,
            statistics_change_names[step->verdict], 100 * step->margin, report_safe(earlier->run_id));
    }
    comparison_free(&comparison);
}

void report_write_end(const struct result *result, FILE *file)
{
    put_end(&(struct end){.file = file, .columns = COLUMNS}, result);
}

void report_write_whole_end(const struct result *result, FILE *file)
{
    put_end(&(struct end){.file = file, .columns = INT_MAX}, result);
}
