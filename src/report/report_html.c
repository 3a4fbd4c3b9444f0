// SPDX-License-Identifier: MIT
// report.html: the result as one page without external resources.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/report.h"
#include "internal.h"
#include "page.h"

static void write_head(const struct result *result, FILE *file)
{
    html_write_head(result->config_name, file);
    fprintf(file, "%" PRId64 " rank%s &middot; ", result->mesh.world, result->mesh.world == 1 ? "" : "s");
    html_write_text(result->precision, file);
    fprintf(file, " &middot; ");
    html_write_text(result->device, file);
    fprintf(file, "<br>");
    html_write_text(result->started, file);
    fprintf(file, " &middot; run ");
    html_write_text(result->run_id, file);
    html_write_badge(result_verdict_names[result->verdict], result_verdict_names[result->verdict], file);
}

static void write_reasons(const struct result *result, FILE *file)
{
    if (result->is_proxy) {
        fprintf(file,
                "<section class=card><h2>Proxy</h2><p>This run has %" PRId64
                " layers, fewer than the model. Its values are not those of the full model.</p></section>\n",
                result->layers);
    }
    if (result->reason_count == 0) {
        return;
    }
    const char *verdict = result_verdict_names[result->verdict];
    if (result->verdict == VERDICT_VALID || result->verdict == VERDICT_PREDICTED) {
        fprintf(file, "<section class=card><h2>%s</h2><ul>\n",
                result->verdict == VERDICT_VALID ? "Notes" : "A prediction");
    } else {
        fprintf(file, "<section class=card><h2>Why this run is <span class=%s>%s</span></h2><ul>\n", verdict, verdict);
    }
    for (int64_t i = 0; i < result->reason_count; i++) {
        fprintf(file, "<li><code>");
        html_write_text(result->reasons[i].id, file);
        fprintf(file, "</code> ");
        html_write_text(result->reasons[i].message, file);
        fprintf(file, "</li>\n");
    }
    fprintf(file, "</ul></section>\n");
}

static void write_utilization(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    char                         value[32];
    if (isnan(result->peak)) {
        html_write_figure(file, "&ndash;", "", "Model FLOPs utilization", "%s", result->peak_source);
        return;
    }
    double utilization = figures->utilization[figures->convention];
    if (isnan(utilization)) {
        html_write_figure(file, "&ndash;", "", "Model FLOPs utilization", "%s would exceed the peak",
                          model_flop_names[figures->convention]);
        return;
    }
    snprintf(value, sizeof(value), "%.2f", 100 * utilization);
    html_write_figure(file, value, "%", "Model FLOPs utilization", "%s; of %.6g TFLOP/s, %s",
                      model_flop_names[figures->convention], result->peak / 1e12, result->peak_source);
}

static void write_expectation(const struct result *result, FILE *file)
{
    const struct result_expectation *expectation = &result->expectation;
    char                             value[32], seconds[32];
    if (expectation->profile[0] != '\0' && !result_is_simulated(result)) {
        snprintf(value, sizeof(value), "%+.1f", 100 * (result->figures.step.median / expectation->step_seconds - 1));
        html_write_figure(file, value, "%", "Ratio to expected", "%s s +-%.1f %%; %s",
                          report_seconds(seconds, sizeof(seconds), expectation->step_seconds), expectation->percent,
                          expectation->profile);
    }
}

static void write_simulated(const struct result *result, const char *seconds, FILE *file)
{
    if (result_is_predicted(result) && !isnan(result->expectation.percent)) {
        html_write_figure(file, seconds, "s", "Step time", "predicted, +-%.1f %%", result->expectation.percent);
    } else {
        html_write_figure(file, seconds, "s", "Step time", result_is_predicted(result) ? "predicted" : "simulated");
    }
}

static void write_figures(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    char                         value[32], low[32], high[32];
    fprintf(file, "<section class=figures>\n");
    report_seconds(low, sizeof(low), figures->step.low);
    report_seconds(high, sizeof(high), figures->step.high);
    report_seconds(value, sizeof(value), figures->step.median);
    if (result_is_simulated(result)) {
        write_simulated(result, value, file);
    } else if (isnan(figures->step.low)) {
        html_write_figure(file, value, "s", "Step time, median", "%" PRId64 " measured step%s", figures->measured_steps,
                          figures->measured_steps == 1 ? "" : "s");
    } else {
        html_write_figure(file, value, "s", "Step time, median", "95 %% interval %s to %s", low, high);
    }
    snprintf(value, sizeof(value), figures->tokens_per_second < 1e4 ? "%.1f" : "%.0f", figures->tokens_per_second);
    html_write_figure(file, value, "tokens/s", "Throughput", "%.1f per device", figures->tokens_per_second_per_rank);
    snprintf(value, sizeof(value), "%.4g", figures->teraflops_per_rank);
    html_write_figure(file, value, "TFLOP/s", "Per device", "convention %s", model_flop_names[figures->convention]);
    write_utilization(result, file);
    write_expectation(result, file);
    snprintf(value, sizeof(value), "%.4g", figures->days_per_trillion_tokens);
    html_write_figure(file, value, "days", "To train 1T tokens", "at this step time");
    if (!isnan(figures->published_ratio)) {
        snprintf(value, sizeof(value), "%.3f", figures->published_ratio);
        html_write_figure(file, value, "&times;", "Ratio to published", "%.3f s, %s", result->published_seconds,
                          result->published_source);
    }
    fprintf(file, "</section>\n");
}

static void write_fact(const char *name, const char *value, const char *unit, FILE *file)
{
    fprintf(file, "<div><span>%s</span>%s%s</div>\n", name, value, unit);
}

static void write_statistics(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    const struct {
        const char *name;
        double      seconds;
    } times[] = {
        {"mean", figures->step.mean},
        {"fastest", figures->step.minimum},
        {"slowest", figures->step.maximum},
        {"95th percentile", figures->step.p95},
        {"last step", figures->last_step_seconds},
        {"mean of steps 35-44", figures->mean_35_44_seconds},
    };
    char value[64];
    fprintf(file, "<div class=facts>\n");
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (!isnan(times[i].seconds)) {
            write_fact(times[i].name, report_seconds(value, sizeof(value), times[i].seconds), " s", file);
        }
    }
    if (!isnan(figures->step.variation)) {
        snprintf(value, sizeof(value), "%.2f", 100 * figures->step.variation);
        write_fact("deviation / mean", value, " %", file);
    }
    if (!isnan(figures->step.drift)) {
        snprintf(value, sizeof(value), "%+.3f", 100 * figures->step.drift);
        write_fact("drift", value, " % per step", file);
    }
    snprintf(value, sizeof(value), "%" PRId64 " of %" PRId64, figures->step.outliers, figures->measured_steps);
    write_fact("outliers", value, "", file);
    fprintf(file, "</div>\n");
}

// Draws a chart of one column of the steps.
static void write_chart(const struct result *result, struct chart chart, size_t offset, FILE *file)
{
    double *values = memory_allocate((size_t)result->step_count * sizeof(*values));
    for (int64_t i = 0; i < result->step_count; i++) {
        values[i] = *(const double *)((const char *)&result->steps[i] + offset);
    }
    chart.values = values;
    chart.count  = result->step_count;
    chart.warmup = result->figures.warmup_steps;
    chart_write(&chart, file);
    free(values);
}

static void write_step_times(const struct result *result, FILE *file)
{
    bool *marks = memory_allocate((size_t)result->step_count * sizeof(*marks));
    for (int64_t i = 0; i < result->step_count; i++) {
        marks[i] = result->steps[i].is_outlier;
    }
    const struct statistics *step  = &result->figures.step;
    bool                     shown = result_is_shown(result);
    struct chart             chart = {.title  = "Step time",
                                      .unit   = "s",
                                      .marks  = marks,
                                      .median = shown ? step->median : NAN,
                                      .low    = shown ? step->low : NAN,
                                      .high   = step->high};
    fprintf(file, "<section class=card><h2>Step time <span class=soft>seconds, slowest rank</span></h2>\n");
    write_chart(result, chart, offsetof(struct result_step, seconds), file);
    fprintf(
        file, "<p class=soft>Shaded: warm-up.%s</p>\n",
        shown ? " Dashed: median of the measured steps, with its 95&nbsp;% interval. Values off the scale are clipped."
              : "");
    if (shown) {
        write_statistics(result, file);
    }
    fprintf(file, "</section>\n");
    free(marks);
}

static void write_learning(const struct result *result, FILE *file)
{
    struct chart loss = {.title = "Loss", .unit = "", .median = NAN, .low = NAN};
    struct chart norm = {.title = "Gradient norm", .unit = "", .median = NAN, .low = NAN};
    fprintf(file, "<div class=columns><section class=card><h2>Loss</h2>\n");
    write_chart(result, loss, offsetof(struct result_step, loss), file);
    fprintf(file, "</section><section class=card><h2>Gradient norm</h2>\n");
    write_chart(result, norm, offsetof(struct result_step, gradient_norm), file);
    fprintf(file, "</section></div>\n");
}

void report_write_html(const struct result *result, FILE *file)
{
    write_head(result, file);
    html_write_acceptance(result, file);
    write_reasons(result, file);
    if (result_is_shown(result)) {
        write_figures(result, file);
    }
    bool has_course = result->step_count > 0 && !result_is_simulated(result);
    if (has_course) {
        write_step_times(result, file);
        html_write_compute_times(result, file);
    }
    if (result->step_count > 0 && result->trace.source[0] != '\0' && result_is_shown(result)) {
        html_write_utilization(result, file);
        html_write_waterfall(result, file);
        html_write_course(result, file);
        html_write_roofline(result, file);
        html_write_transfer_times(result, file);
    }
    if (has_course) {
        write_learning(result, file);
    }
    html_write_tables(result, file);
    fprintf(file, "<footer>gswbench ");
    html_write_text(result->version, file);
    fprintf(file, " &middot; method %" PRId64 " &middot; config ", result->method);
    html_write_text(result->config_hash, file);
    html_write_foot(file);
}
