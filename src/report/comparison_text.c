// SPDX-License-Identifier: MIT
// Writes a comparison as text: the settings that differ, the verdict, and a table of both results. A table of waterfall
// parts explains the change of the step time; the changes of the parts add up to it. If the second result has a lower
// precision, the text says why its speed-up is below the ratio of the peak FLOP/s.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "internal.h"

static void write_settings(const struct comparison *comparison, FILE *file)
{
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        fprintf(file, "# %s %s: %s -> %s\n", setting->is_obstacle ? "NOT COMPARABLE" : "differs",
                report_safe(setting->name), report_safe(setting->first), report_safe(setting->second));
    }
}

static void write_side(const char *name, const struct comparison_repeats *repeats, const struct result *result,
                       FILE *file)
{
    fprintf(file, "# %s ", name);
    if (repeats->runs > 1) {
        fprintf(file, "%" PRId64 " runs with a spread of %.2f%%, the middle one ", repeats->runs,
                100 * repeats->spread);
    }
    fprintf(file, "%s %s of %s  precision %s  ", result_is_predicted(result) ? "prediction" : "run",
            report_safe(result->run_id), report_safe(result->config_name), report_safe(result->precision));
    report_write_batch(result, file);
    fprintf(file, "  ");
    report_write_layout(result, file);
}

// Unless a result is VALID, EMULATED or PREDICTED, writes its verdict and the ids of the reasons: "# first is DEGRADED:
// foreign-load".
static void write_doubt(const char *name, const struct result *result, FILE *file)
{
    const char *separator = ":";
    if (result_is_clean(result)) {
        return;
    }
    fprintf(file, "# %s is %s", name, report_upper(result_verdict_names[result->verdict]));
    for (int64_t i = 0; i < result->reason_count; i++) {
        if (result->reasons[i].verdict != VERDICT_VALID) {
            fprintf(file, "%s %s", separator, report_safe(result->reasons[i].id));
            separator = ",";
        }
    }
    fputc('\n', file);
}

const char *comparison_verdict(const struct comparison *comparison)
{
    bool is_predicted = result_is_predicted(comparison->first) && result_is_predicted(comparison->second);
    bool is_equal     = comparison->step.verdict == CHANGE_AMBIGUOUS || comparison->step.verdict == CHANGE_SAME;
    bool is_known     = !isnan(comparison->step.low);
    return is_predicted && is_equal && is_known ? "equal within error"
                                                : statistics_change_names[comparison->step.verdict];
}

const char *comparison_interval(const struct comparison *comparison)
{
    bool first = result_is_predicted(comparison->first), second = result_is_predicted(comparison->second);
    if (isnan(comparison->step.low)) {
        return first || second ? "no prediction interval" : "too few steps for an interval";
    }
    return first && second   ? "by the predictions"
           : first || second ? "by the prediction's range"
                             : "95% CI of the medians";
}

// Writes the error of each prediction. If the two predictions share most of their error, the interval after the verdict
// is narrower than these errors.
static void write_prediction_errors(const struct comparison *comparison, FILE *file)
{
    double first = comparison->first->expectation.percent, second = comparison->second->expectation.percent;
    if (result_is_predicted(comparison->first) && result_is_predicted(comparison->second) && !isnan(first + second)) {
        fprintf(file, "# both are predictions, +-%.1f %% and +-%.1f %%%s\n", first, second,
                comparison_shares_errors(comparison) ? ", with the same profiles, which share most of their error"
                                                     : "");
    }
}

static void write_verdict(const struct comparison *comparison, FILE *file)
{
    const struct statistics_change *step = &comparison->step;
    fputs(report_upper(comparison_verdict(comparison)), file);
    if (isnan(step->speedup)) {
        fprintf(file, "  one of them has no measured step\n");
        return;
    }
    fprintf(file, "  speed-up %.3f", step->speedup);
    fprintf(file, isnan(step->low) ? "  (%s)" : "  [%s: %.3f to %.3f]", comparison_interval(comparison), step->low,
            step->high);
    fprintf(file, "\nstep time %+.1f%%; ", 100 * step->relative);
    if (step->is_short) {
        fprintf(file, "a verdict needs %d measured steps of each\n", CHANGE_COUNT_MIN);
    } else {
        fprintf(file, "noise limit: %.1f%%%s\n", 100 * step->margin,
                step->swings ? ", since steps of one run form levels that far apart" : "");
    }
}

// print_value formats one value of a table row. write_row writes the row: the values of both results, and the change in
// percent.
typedef const char *print_value(double value);

static void write_row(const char *name, print_value *print, double first, double second, FILE *file)
{
    if (isnan(first) && isnan(second)) {
        return;
    }
    fprintf(file, "%-34s %14s %14s", name, print(first), print(second));
    if (first > 0 && second > 0) {
        fprintf(file, " %+9.1f%%", 100 * (second / first - 1));
    }
    fputc('\n', file);
}

static double last_of(const struct result *result, size_t offset)
{
    return result->step_count == 0 ? NAN
                                   : *(const double *)((const char *)&result->steps[result->step_count - 1] + offset);
}

static const char *label_of(const struct comparison *comparison, bool is_second)
{
    const char *first = comparison->first->precision, *second = comparison->second->precision;
    bool        tells = strcmp(first, second) != 0;
    return is_second ? (tells ? second : "second") : (tells ? first : "first");
}

static void write_table(const struct comparison *comparison, FILE *file)
{
    const struct result         *first = comparison->first, *second = comparison->second;
    const struct result_figures *left = &first->figures, *right = &second->figures;
    fprintf(file, "%-34s %14s %14s %10s\n", "", label_of(comparison, false), label_of(comparison, true), "change");
    write_row("step time, s", report_seconds, left->step.median, right->step.median, file);
    write_row("  95% interval from", report_seconds, left->step.low, right->step.low, file);
    write_row("  to", report_seconds, left->step.high, right->step.high, file);
    if (comparison->work != 1) {
        write_row("  for the first's tokens", report_seconds, left->step.median, right->step.median / comparison->work,
                  file);
    }
    write_row("tokens/s", report_real, left->tokens_per_second, right->tokens_per_second, file);
    write_row("tokens/s per device", report_real, left->tokens_per_second_per_rank, right->tokens_per_second_per_rank,
              file);
    write_row("$ per million tokens", report_real, report_token_dollars(first), report_token_dollars(second), file);
    write_row("tokens per joule", report_real, left->tokens_per_joule, right->tokens_per_joule, file);
    write_row("TFLOP/s per device", report_real, left->teraflops_per_rank, right->teraflops_per_rank, file);
    write_row("model FLOPs utilization", report_percent, left->utilization[left->convention],
              right->utilization[right->convention], file);
    write_row("  of a peak in TFLOP/s", report_real, result_peak(first, (enum flop_convention)left->convention) / 1e12,
              result_peak(second, (enum flop_convention)right->convention) / 1e12, file);
    for (int i = 0; i < STORAGE_COUNT; i++) {
        if (first->storage_bytes[i] != second->storage_bytes[i]) {
            write_row(plan_storage_name((enum storage)i), report_bytes, (double)first->storage_bytes[i],
                      (double)second->storage_bytes[i], file);
        }
    }
    write_row("memory of rank 0", report_bytes, (double)first->allocated_bytes, (double)second->allocated_bytes, file);
    write_row("loss of the last step", report_real, last_of(first, offsetof(struct result_step, loss)),
              last_of(second, offsetof(struct result_step, loss)), file);
    write_row("gradient norm of the last step", report_real,
              last_of(first, offsetof(struct result_step, gradient_norm)),
              last_of(second, offsetof(struct result_step, gradient_norm)), file);
}

static void write_curve(const char *name, const struct comparison_curve *curve, FILE *file)
{
    if (!isnan(curve->largest)) {
        fprintf(file, "%s: apart by %.4f%% at most (step %" PRId64 "), %.4f%% in the last common step (%" PRId64 ")\n",
                name, 100 * curve->largest, curve->largest_step, 100 * curve->last, curve->last_step);
    }
}

static const double MIN_CHANGE = 0.01;    // relative changes of the step time below this are not explained

// Returns the seconds by which a waterfall part of the second step exceeds the same part of the first step divided by
// `pace` (the expected speed-up).
static double shortfall(const struct comparison_row *row, double pace)
{
    return row->second - row->first / pace;
}

static void write_part(const struct comparison_row *row, double pace, FILE *file)
{
    fprintf(file, "  %-31s %10s %10s %+10.6f", row->name, report_seconds(row->first), report_seconds(row->second),
            row->second - row->first);
    if (pace > 1) {
        fprintf(file, " %+13.6f", shortfall(row, pace));
    }
    fputc('\n', file);
}

static struct comparison_row sum(const struct comparison *comparison)
{
    struct comparison_row whole = {.name = "the median step"};
    for (int64_t i = 0; i < comparison->part_count; i++) {
        whole.first += comparison->parts[i].first;
        whole.second += comparison->parts[i].second;
    }
    return whole;
}

static void write_parts(const struct comparison *comparison, FILE *file)
{
    char beyond[32] = "";
    if (comparison->pace > 1) {
        snprintf(beyond, sizeof(beyond), " beyond 1/%.2f", comparison->pace);
    }
    fprintf(file, "%-33s %10s %10s %10s%s\n", "where the step goes, s", label_of(comparison, false),
            label_of(comparison, true), "change", beyond);
    for (int64_t i = 0; i < comparison->part_count; i++) {
        const struct comparison_row *row = &comparison->parts[i];
        if (row->first != 0 || row->second != 0) {
            write_part(row, comparison->pace, file);
        }
    }
    struct comparison_row whole = sum(comparison);
    write_part(&whole, comparison->pace, file);
}

static void write_families(const struct comparison *comparison, FILE *file)
{
    fprintf(file, "%-34s %14s %14s %10s\n", "compute ops, s", label_of(comparison, false), label_of(comparison, true),
            "speed-up");
    for (int64_t i = 0; i < comparison->family_count; i++) {
        const struct comparison_row *row         = &comparison->families[i];
        char                         speedup[32] = "-";
        if (row->first > 0 && row->second > 0) {
            snprintf(speedup, sizeof(speedup), "%.3f", row->first / row->second);
        }
        fprintf(file, "  %-32s %14s %14s %10s\n", row->name, report_seconds(row->first), report_seconds(row->second),
                speedup);
    }
}

// For each waterfall part, why a lower precision speeds it up by less than the ratio of the peaks.
// clang-format off
#define AXIS_WORDS(NAME, ...) [WATERFALL_EXPOSED_##NAME] = "exposed communication",
static const char *const reasons[WATERFALL_PARTS] = {
    [WATERFALL_IDEAL]        = "the peaks",
    [WATERFALL_GEMM]         = "GEMMs below the lower precision's peak, or not in it",
    [WATERFALL_ATTENTION]    = "attention, which stays in the higher precision",
    [WATERFALL_MEMORY]       = "memory-bound ops, which move the same bytes",
    [WATERFALL_CAST]         = "casts",
    [WATERFALL_RECOMPUTE]    = "recompute",
    [WATERFALL_OPTIMIZER]    = "the optimizer, which moves the same bytes",
    [WATERFALL_BUBBLE]       = "idle pipeline stages",
    AXES(AXIS_WORDS)
    [WATERFALL_LAUNCH]       = "host launches, which are as many",
    [WATERFALL_CONTENTION]   = "compute that overlapped communication slows",
    [WATERFALL_STRAGGLERS]   = "slower ranks",
    [WATERFALL_UNEXPLAINED]  = "gaps between ops, and the difference between measured steps and the traced one",
};
// clang-format on

struct cause {
    double  seconds;
    int64_t part;
};

static int largest_first(const void *a, const void *b)
{
    double left = ((const struct cause *)a)->seconds, right = ((const struct cause *)b)->seconds;
    return (left < right) - (left > right);
}

// Settings that change how well a step overlaps communication or fills the pipeline, and the waterfall part that shows
// the effect.
static const struct technique {
    const char *setting;
    int64_t     part;
} techniques[] = {
    {"parallel.tp_overlap", WATERFALL_EXPOSED_TP},
    {"parallel.tp_overlap_experts", WATERFALL_EXPOSED_TP},
    {"parallel.zero", WATERFALL_EXPOSED_DP},
    {"parallel.zero_gather", WATERFALL_EXPOSED_DP},
    {"parallel.gradient_reduce", WATERFALL_EXPOSED_DP},
    {"parallel.prefetch", WATERFALL_EXPOSED_FSDP},
    {"parallel.context", WATERFALL_EXPOSED_CP},
    {"train.overlap_microbatches", WATERFALL_EXPOSED_EP},
    {"train.delay_weight_gradients", WATERFALL_EXPOSED_EP},
    {"parallel.vp", WATERFALL_BUBBLE},
    {"parallel.schedule", WATERFALL_BUBBLE},
    {"run.graphs", WATERFALL_UNEXPLAINED},
    {"run.zero_cta", WATERFALL_CONTENTION},
    {"run.sm_margin", WATERFALL_CONTENTION},
};

static void write_techniques(const struct comparison *comparison, int64_t part, FILE *file)
{
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        for (size_t j = 0; j < sizeof(techniques) / sizeof(techniques[0]); j++) {
            if (techniques[j].part == part && strcmp(techniques[j].setting, setting->name) == 0) {
                fprintf(file, "  %s: %s -> %s", setting->name, setting->first, setting->second);
            }
        }
    }
}

// Sorts the waterfall parts by shortfall(), the largest first; with sign = -1, the smallest first.
static void sort_causes(struct cause *causes, const struct comparison *comparison, double pace, double sign)
{
    for (int64_t i = 0; i < comparison->part_count; i++) {
        causes[i] = (struct cause){sign * shortfall(&comparison->parts[i], pace), i};
    }
    qsort(causes, (size_t)comparison->part_count, sizeof(*causes), largest_first);
}

// Writes the parts that keep the second step from being `pace` times as fast. Leaves out parts below 5 % of the total
// shortfall.
static void write_why(const struct comparison *comparison, FILE *file)
{
    const char           *first = comparison->first->precision, *second = comparison->second->precision;
    double                pace  = comparison->pace;
    struct comparison_row whole = sum(comparison);
    double                total = shortfall(&whole, pace);
    struct cause          causes[WATERFALL_PARTS];
    if (!(total > 0)) {
        fprintf(file, "%s is at least %.2f times as fast as %s\n", second, pace, first);
        return;
    }
    sort_causes(causes, comparison, pace, 1);
    fprintf(file, "why %s is not %.2f times as fast as %s: it takes %.6f s more than 1/%.2f of the step\n", second,
            pace, first, total, pace);
    for (int64_t i = 0; i < comparison->part_count && causes[i].seconds >= total / 20; i++) {
        fprintf(file, "  %5.1f%%  %-12s  %s\n", 100 * causes[i].seconds / total, comparison->parts[causes[i].part].name,
                reasons[causes[i].part]);
    }
}

// Writes the waterfall parts that change in the direction of the step: shorter parts if the second step is shorter,
// else longer parts. Leaves out parts below 5 % of the step's change. Writes nothing if the change of the step is
// within MIN_CHANGE.
static void write_change(const struct comparison *comparison, FILE *file)
{
    struct comparison_row whole  = sum(comparison);
    double                change = whole.second - whole.first;
    struct cause          causes[WATERFALL_PARTS];
    if (!(fabs(change) > MIN_CHANGE * whole.first)) {
        return;
    }
    sort_causes(causes, comparison, 1, change < 0 ? -1 : 1);
    fprintf(file, "where the second %s %.6f s\n", change < 0 ? "gains" : "loses", fabs(change));
    for (int64_t i = 0; i < comparison->part_count && causes[i].seconds >= fabs(change) / 20; i++) {
        fprintf(file, "  %5.1f%%  %s", 100 * causes[i].seconds / fabs(change), comparison->parts[causes[i].part].name);
        write_techniques(comparison, causes[i].part, file);
        fputc('\n', file);
    }
}

static void write_explanation(const struct comparison *comparison, FILE *file)
{
    if (comparison->part_count == 0) {
        fprintf(file, "where the difference is: unknown, a run has no traced step (trace.steps)\n");
        return;
    }
    write_parts(comparison, file);
    write_families(comparison, file);
    if (comparison->pace > 1) {
        write_why(comparison, file);
    } else {
        write_change(comparison, file);
    }
}

static void write_one(const struct comparison *comparison, FILE *file)
{
    write_side("first ", &comparison->repeats[0], comparison->first, file);
    write_side("second", &comparison->repeats[1], comparison->second, file);
    write_doubt("first", comparison->first, file);
    write_doubt("second", comparison->second, file);
    write_settings(comparison, file);
    if (comparison->work != 1) {
        fprintf(file,
                "# a step of the second has %.3f times the tokens per device: its times are scaled to equal tokens\n",
                comparison->work);
    }
    write_prediction_errors(comparison, file);
    write_verdict(comparison, file);
    write_table(comparison, file);
    write_curve("loss", &comparison->loss, file);
    write_curve("gradient norm", &comparison->gradient_norm, file);
    write_explanation(comparison, file);
}

static void write_line(const struct result *result, double speedup, const char *name, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    fprintf(file, "%6" PRId64 "  %-4.8s %12s %12s %8s %9s  %s\n", result->mesh.world, result->precision,
            report_seconds(figures->step.median), report_number("%.1f", figures->tokens_per_second_per_rank),
            report_percent(figures->utilization[figures->convention]), report_number("%.3f", speedup),
            report_safe(name));
}

void comparison_write_text(const struct comparison *list, int64_t count, FILE *file)
{
    for (int64_t i = 0; i < count; i++) {
        struct text_stream text;
        fputs(i > 0 ? "\n" : "", file);
        text_stream_open(&text);
        write_one(&list[i], text.file);
        text_print_lines(file, &text);
    }
    if (count > 1) {
        fprintf(file, "\n%6s  %-4s %12s %12s %8s %9s\n", "ranks", "type", "step, s", "tokens/s/dev", "MFU", "speed-up");
        write_line(list->first, 1.0, "the first", file);
    }
    for (int64_t i = 0; i < count && count > 1; i++) {
        char name[160];
        write_line(list[i].second, list[i].step.speedup, comparison_name(&list[i], name, sizeof(name)), file);
    }
}
