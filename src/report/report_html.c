// SPDX-License-Identifier: MIT
// Writes report.html: the result as one page without external resources. report_tables.c has its lower half.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

static void write_acceptance(const struct result *result, FILE *file)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    if (acceptance->verdict != ACCEPTANCE_NONE) {
        html_print(file,
                   "<section class=card><h2>Acceptance <span class=soft>of the machine</span></h2>\n<p><b>%s</b>: "
                   "%s</p>\n<p class=soft>drain: %s</p></section>\n",
                   result_acceptance_names[acceptance->verdict], acceptance->reason,
                   acceptance->drain[0] != '\0' ? acceptance->drain : "none");
    }
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
        html_print(file, "<li><code>%s</code> %s</li>\n", result->reasons[i].id, result->reasons[i].message);
    }
    fprintf(file, "</ul></section>\n");
}

static void write_utilization(const struct result *result, FILE *file)
{
    static const char *const label       = "Model FLOPs utilization";
    enum flop_convention     convention  = (enum flop_convention)result->figures.convention;
    double                   utilization = result->figures.utilization[convention];
    if (isnan(result->peak)) {
        html_write_figure(file, "&ndash;", "", label, "%s", result->peak_source);
    } else if (isnan(utilization)) {
        html_write_figure(file, "&ndash;", "", label, "%s would exceed the peak", model_flop_names[convention]);
    } else {
        html_write_figure(file, report_number("%.2f", 100 * utilization), "%", label, "%s; of %.6g TFLOP/s, %s",
                          model_flop_names[convention], result_peak(result, convention) / 1e12,
                          report_peak_source(result));
    }
}

static void write_expectation(const struct result *result, FILE *file)
{
    const struct result_expectation *expectation = &result->expectation;
    double                           excess      = result->figures.step.median / expectation->step_seconds - 1;
    if (expectation->profile[0] != '\0' && !result_is_simulated(result)) {
        html_write_figure(file, report_number("%+.1f", 100 * excess), "%", "Ratio to expected", "%s s +-%.1f %%; %s",
                          report_digits(expectation->step_seconds), expectation->percent, expectation->profile);
    }
}

static void write_figures(const struct result *result, FILE *file)
{
    const struct result_figures *figures = &result->figures;
    const char                  *median  = report_digits(figures->step.median);
    fprintf(file, "<section class=figures>\n");
    if (result_is_predicted(result)) {
        double percent = result->expectation.percent;
        html_write_figure(file, median, "s", "Step time", isnan(percent) ? "predicted" : "predicted, +-%.1f %%",
                          percent);
    } else if (result_is_simulated(result)) {
        html_write_figure(file, median, "s", "Step time", "simulated");
    } else if (isnan(figures->step.low)) {
        html_write_figure(file, median, "s", "Step time, median", "%" PRId64 " measured step%s",
                          figures->measured_steps, figures->measured_steps == 1 ? "" : "s");
    } else {
        html_write_figure(file, median, "s", "Step time, median", "95 %% interval %s to %s",
                          report_digits(figures->step.low), report_digits(figures->step.high));
    }
    html_write_figure(file,
                      report_number(figures->tokens_per_second < 1e4 ? "%.1f" : "%.0f", figures->tokens_per_second),
                      "tokens/s", "Throughput", "%.1f per device", figures->tokens_per_second_per_rank);
    html_write_figure(file, report_number("%.4g", figures->teraflops_per_rank), "TFLOP/s", "Per device",
                      "convention %s", model_flop_names[figures->convention]);
    write_utilization(result, file);
    write_expectation(result, file);
    if (!isnan(figures->days_per_trillion_tokens)) {
        html_write_figure(file, report_number("%.4g", figures->days_per_trillion_tokens), "days", "To train 1T tokens",
                          "at this step time");
    }
    if (!isnan(figures->published_ratio)) {
        html_write_figure(file, report_number("%.3f", figures->published_ratio), "&times;", "Ratio to published",
                          "%.3f s, %s%s", result->published_seconds, result->published_source,
                          report_error_status(result));
    }
    fprintf(file, "</section>\n");
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
    fprintf(file, "<div class=facts>\n");
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (!isnan(times[i].seconds)) {
            fprintf(file, "<div><span>%s</span>%s s</div>\n", times[i].name, report_digits(times[i].seconds));
        }
    }
    if (!isnan(figures->step.variation)) {
        fprintf(file, "<div><span>deviation / mean</span>%.2f %%</div>\n", 100 * figures->step.variation);
    }
    if (!isnan(figures->step.drift)) {
        fprintf(file, "<div><span>drift</span>%+.3f %% per step</div>\n", 100 * figures->step.drift);
    }
    fprintf(file, "<div><span>outliers</span>%" PRId64 " of %" PRId64 "</div>\n</div>\n", figures->step.outliers,
            figures->measured_steps);
}

static void write_histogram(const struct result *result, FILE *file)
{
    enum { STEPS_MIN = 10 };
    double *values = memory_allocate((size_t)result->step_count * sizeof(*values));
    int64_t count  = 0;
    for (int64_t i = 0; i < result->step_count; i++) {
        if (result->steps[i].phase == STEP_MEASURE && isfinite(result->steps[i].seconds)) {
            values[count++] = result->steps[i].seconds;
        }
    }
    if (count >= STEPS_MIN) {
        chart_write_histogram(values, count, file);
    }
    free(values);
}

static void write_step_times(const struct result *result, FILE *file)
{
    const struct statistics *step  = &result->figures.step;
    bool                     shown = result_is_shown(result);
    struct chart             chart = {.result         = result,
                                      .title          = "Step time",
                                      .unit           = "s",
                                      .offset         = offsetof(struct result_step, seconds),
                                      .marks_outliers = true,
                                      .median         = shown ? step->median : NAN,
                                      .low            = shown ? step->low : NAN,
                                      .high           = step->high};
    fprintf(file, "<section class=card><h2>Step time <span class=soft>seconds, slowest rank</span></h2>\n");
    chart_write(&chart, file);
    fprintf(
        file, "<p class=soft>Shaded: warm-up.%s</p>\n",
        shown ? " Dashed: median of the measured steps, with its 95&nbsp;% interval. Values off the scale are clipped."
              : "");
    if (shown) {
        write_histogram(result, file);
        write_statistics(result, file);
    }
    fprintf(file, "</section>\n");
}

static void write_learning(const struct result *result, FILE *file)
{
    struct chart chart = {.result = result,
                          .title  = "Loss",
                          .unit   = "",
                          .offset = offsetof(struct result_step, loss),
                          .median = NAN,
                          .low    = NAN};
    fprintf(file, "<div class=columns><section class=card><h2>Loss</h2>\n");
    chart_write(&chart, file);
    fprintf(file, "</section><section class=card><h2>Gradient norm</h2>\n");
    chart.title  = "Gradient norm";
    chart.offset = offsetof(struct result_step, gradient_norm);
    chart_write(&chart, file);
    fprintf(file, "</section></div>\n");
}

// Returns the published MFU or, if only a step time was published, the MFU that follows from it.
static double find_published(const struct result *result)
{
    if (isnan(result->figures.published_ratio)) {
        return NAN;
    }
    return !isnan(result->published_mfu) ? result->published_mfu
                                         : result_utilization(result, FLOPS_PUBLISHED, result->published_seconds);
}

static void write_bars(const struct result *result, FILE *file)
{
    const struct result_figures *figures    = &result->figures;
    enum flop_convention         convention = (enum flop_convention)figures->convention;
    double                       expected   = result->expectation.step_seconds;
    const struct {
        const char *name;
        double      share;    // MFU, as a fraction of 1; NaN: unknown
        int         colour;
    } bars[] = {{result_is_simulated(result) ? result_source_names[result->trace.source] : "measured",
                 figures->utilization[convention], BAR_COMPUTE},
                {"expected",
                 report_expected_parts(result) == NULL ? NAN : result_utilization(result, convention, expected),
                 BAR_IDEAL},
                {"published", find_published(result), BAR_REST}};
    if (isnan(bars[0].share) || (isnan(bars[1].share) && isnan(bars[2].share))) {
        return;
    }
    fprintf(file,
            "<section class=card><h2>Model FLOPs utilization <span class=soft>of the peak, convention %s</span></h2>"
            "<table class=utilization>\n",
            model_flop_names[convention]);
    for (int i = 0; i < 3; i++) {
        if (!isnan(bars[i].share)) {
            fprintf(file, "<tr><td>%s</td>", bars[i].name);
            html_write_bar(bars[i].colour, 0.0, bars[i].share, file);
            fprintf(file, "<td class=n>%.2f %%</td></tr>\n", 100 * bars[i].share);
        }
    }
    fprintf(file, "</table></section>\n");
}

void report_write_html(const struct result *result, FILE *file)
{
    const char *verdict = result_verdict_names[result->verdict];
    html_write_head(result->config_name, file);
    html_print(file, "%" PRId64 " rank%s &middot; %s &middot; %s<br>%s &middot; run %s", result->mesh.world,
               result->mesh.world == 1 ? "" : "s", result->precision, result->device, result->started, result->run_id);
    html_write_badge(verdict, verdict, file);
    write_acceptance(result, file);
    // Reasons to doubt the figures are printed before the figures, and notes after them.
    bool is_noted = !result->is_proxy && (result->verdict == VERDICT_VALID || result->verdict == VERDICT_PREDICTED);
    if (!is_noted) {
        write_reasons(result, file);
    }
    if (result_is_shown(result)) {
        write_figures(result, file);
    }
    if (is_noted) {
        write_reasons(result, file);
    }
    bool has_timeline = result->step_count > 0 && !result_is_simulated(result);
    if (has_timeline) {
        write_step_times(result, file);
        html_write_compute_times(result, file);
    }
    if (result->step_count > 0 && result->trace.source != RESULT_UNTRACED && result_is_shown(result)) {
        write_bars(result, file);
        html_write_waterfall(result, file);
        html_write_timeline(result, file);
        html_write_roofline(result, file);
        html_write_communication_times(result, file);
    }
    if (has_timeline) {
        write_learning(result, file);
    }
    html_write_tables(result, file);
    html_write_foot(file, "%s &middot; method %" PRId64 " &middot; config %s", result->version, result->method,
                    result->config_hash);
}
