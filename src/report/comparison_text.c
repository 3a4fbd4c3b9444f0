// SPDX-License-Identifier: MIT
// A comparison as lines of text: what was compared, the verdict, and a table of both results.
#include <inttypes.h>
#include <math.h>

#include "gswbench/comparison.h"
#include "gswbench/number.h"
#include "internal.h"

static void write_settings(const struct comparison *comparison, FILE *file)
{
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        char name[sizeof(setting->name)], first[sizeof(setting->first)], second[sizeof(setting->second)];
        fprintf(file, "# %s %s: %s -> %s\n", setting->is_obstacle ? "NOT COMPARABLE" : "differs",
                report_safe(name, sizeof(name), setting->name), report_safe(first, sizeof(first), setting->first),
                report_safe(second, sizeof(second), setting->second));
    }
}

static void write_side(const char *name, const struct result *result, FILE *file)
{
    char config[128], id[sizeof(result->run_id)];
    fprintf(file, "# %s run %s of %s  ", name, report_safe(id, sizeof(id), result->run_id),
            report_safe(config, sizeof(config), result->config_name));
    report_write_layout(result, file);
}

static void write_verdict(const struct statistics_change *step, FILE *file)
{
    report_write_upper(statistics_change_names[step->verdict], file);
    if (isnan(step->speedup)) {
        fprintf(file, "  one of them has no measured step\n");
        return;
    }
    fprintf(file, "  speed-up %.3f", step->speedup);
    if (isnan(step->low)) {
        fprintf(file, "  (too few steps for an interval)");
    } else {
        fprintf(file, "  [95%% CI of the medians: %.3f to %.3f]", step->low, step->high);
    }
    fprintf(file, "  step time %+.1f%%; less than %.1f%% would not count\n", 100 * step->relative, 100 * step->margin);
}

// A row of two values that a function prints, and their change in percent.
typedef const char *print_value(char *text, size_t bytes, double value);

static void write_row(const char *name, print_value *print, double first, double second, FILE *file)
{
    char left[32], right[32];
    fprintf(file, "%-34s %14s %14s", name, isnan(first) ? "-" : print(left, sizeof(left), first),
            isnan(second) ? "-" : print(right, sizeof(right), second));
    if (first > 0 && second > 0) {
        fprintf(file, " %+9.1f%%", 100 * (second / first - 1));
    }
    fputc('\n', file);
}

static const char *print_real(char *text, size_t bytes, double value)
{
    snprintf(text, bytes, fabs(value) < 1e4 ? "%.6g" : "%.0f", value);
    return text;
}

static const char *print_percent(char *text, size_t bytes, double value)
{
    snprintf(text, bytes, "%.2f%%", 100 * value);
    return text;
}

static double last_of(const struct result *result, size_t offset)
{
    return result->step_count == 0 ? NAN
                                   : *(const double *)((const char *)&result->steps[result->step_count - 1] + offset);
}

static void write_table(const struct comparison *comparison, FILE *file)
{
    const struct result         *first = comparison->first, *second = comparison->second;
    const struct result_figures *left = &first->figures, *right = &second->figures;
    fprintf(file, "%-34s %14s %14s %10s\n", "", first->precision, second->precision, "change");
    write_row("step time, s", report_seconds, left->step.median, right->step.median, file);
    write_row("  95% interval from", report_seconds, left->step.low, right->step.low, file);
    write_row("  to", report_seconds, left->step.high, right->step.high, file);
    write_row("tokens/s", print_real, left->tokens_per_second, right->tokens_per_second, file);
    write_row("TFLOP/s a device", print_real, left->teraflops_per_rank, right->teraflops_per_rank, file);
    write_row("model FLOPs utilization", print_percent, left->utilization[left->convention],
              right->utilization[right->convention], file);
    write_row("  of a peak in TFLOP/s", print_real, first->peak / 1e12, second->peak / 1e12, file);
    for (int i = 0; i < STORAGE_COUNT; i++) {
        if (first->storage_bytes[i] != second->storage_bytes[i]) {
            write_row(plan_storage_name((enum storage)i), number_bytes, (double)first->storage_bytes[i],
                      (double)second->storage_bytes[i], file);
        }
    }
    write_row("memory of rank 0", number_bytes, (double)first->allocated_bytes, (double)second->allocated_bytes, file);
    write_row("loss of the last step", print_real, last_of(first, offsetof(struct result_step, loss)),
              last_of(second, offsetof(struct result_step, loss)), file);
    write_row("gradient norm of the last step", print_real, last_of(first, offsetof(struct result_step, gradient_norm)),
              last_of(second, offsetof(struct result_step, gradient_norm)), file);
}

static void write_curve(const char *name, const struct comparison_curve *curve, FILE *file)
{
    if (!isnan(curve->largest)) {
        fprintf(file,
                "%s: apart by %.4f%% at most (step %" PRId64 "), by %.4f%% in the last common step (%" PRId64 ")\n",
                name, 100 * curve->largest, curve->largest_step, 100 * curve->last, curve->last_step);
    }
}

void comparison_write_text(const struct comparison *comparison, FILE *file)
{
    write_side("first ", comparison->first, file);
    write_side("second", comparison->second, file);
    write_settings(comparison, file);
    write_verdict(&comparison->step, file);
    write_table(comparison, file);
    write_curve("loss", &comparison->loss, file);
    write_curve("gradient norm", &comparison->gradient_norm, file);
    comparison_write_parts(comparison, file);
}
