// SPDX-License-Identifier: MIT
// Writes an HTML page that compares one or more results with a first result: a table of all results, and for each
// result its differences from the first.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/comparison.h"
#include "internal.h"

// CSS class for each verdict about the step time.
static const char *const classes[CHANGE_COUNT] = {
    [CHANGE_SAME] = "valid", [CHANGE_FASTER] = "valid", [CHANGE_SLOWER] = "invalid", [CHANGE_AMBIGUOUS] = "degraded"};

static void write_head(const struct comparison *list, int64_t count, FILE *file)
{
    int64_t verdict = list->step.verdict;
    html_write_head("Comparison", file);
    for (int64_t i = -1; i < count; i++) {
        const struct result *result = i < 0 ? list->first : list[i].second;
        fputs(i < 0 ? "" : i == 0 ? "<br>and " : ", ", file);
        html_print(file, "%s %s", result->config_name, result->run_id);
    }
    html_write_badge(classes[verdict], count == 1 ? comparison_verdict(list) : NULL, file);
}

static void write_all(const struct comparison *list, int64_t count, FILE *file)
{
    enum { NAME_BYTES = 160 };
    struct report_listed *rows = memory_allocate((size_t)(count + 1) * sizeof(*rows));
    char(*names)[NAME_BYTES]   = memory_allocate((size_t)count * sizeof(*names));
    rows[0]                    = (struct report_listed){.name = "the first", .result = list->first, .speedup = 1.0};
    for (int64_t i = 0; i < count; i++) {
        rows[i + 1] = (struct report_listed){.name    = comparison_name(&list[i], names[i], sizeof(names[i])),
                                             .result  = list[i].second,
                                             .speedup = list[i].step.speedup};
    }
    fprintf(file, "<section class=card><h2>Results</h2>\n");
    html_write_list(rows, count + 1, file);
    fprintf(file, "</section>\n");
    free(rows);
    free(names);
}

static void write_repeats(const struct comparison_repeats *repeats, const char *which, FILE *file)
{
    if (repeats->runs > 1) {
        html_write_figure(file, report_number("%.2f", 100 * repeats->spread), "%", "Spread over repeats",
                          "%" PRId64 " runs, the %s result", repeats->runs, which);
    }
}

// Says how certain the change of the step time is: by the errors of two predictions, and by the interval.
static void write_certainty(const struct comparison *comparison, FILE *file)
{
    const struct statistics_change *step = &comparison->step;
    double first = comparison->first->expectation.percent, second = comparison->second->expectation.percent;
    if (result_is_predicted(comparison->first) && result_is_predicted(comparison->second) && !isnan(first + second)) {
        fprintf(file, "Both are predictions, with errors of +-%.1f %% and +-%.1f %%%s. ", first, second,
                comparison_shares_errors(comparison) ? ", mostly shared" : "");
    }
    fprintf(file, isnan(step->low) ? "Speed-up: %s." : "Interval of the speed-up, %s: %.3f to %.3f.",
            comparison_interval(comparison), step->low, step->high);
    fprintf(file, " Noise limit: %.1f %%.", 100 * step->margin);
}

static void write_answer(const struct comparison *comparison, FILE *file)
{
    const struct statistics_change *step  = &comparison->step;
    double                          first = comparison->first->figures.step.median,
           second                         = comparison->second->figures.step.median / comparison->work;
    fprintf(file, "<section class=card><h2>");
    if (isnan(step->speedup)) {
        fprintf(file, "One of them has no measured step</h2></section>\n");
        return;
    }
    const char *tokens = comparison->work != 1 ? ", for equal tokens" : "";
    if (step->verdict == CHANGE_SAME) {
        fprintf(file, "No difference above the noise limit of %.1f %%", 100 * step->margin);
    } else {
        fprintf(file, "%s second takes %.1f %% %s", step->verdict == CHANGE_AMBIGUOUS ? "Undecided: the" : "The",
                100 * fabs(step->relative), step->relative < 0 ? "less time" : "longer");
    }
    fprintf(file, " <span class=soft>%s s after %s s per step%s</span></h2>\n<p>", report_digits(second),
            report_digits(first), tokens);
    write_certainty(comparison, file);
    fprintf(file, "</p></section>\n");
}

static void write_figures(const struct comparison *comparison, FILE *file)
{
    const struct statistics_change *step    = &comparison->step;
    const char                     *speedup = report_number("%.3f", step->speedup);
    if (isnan(step->speedup)) {
        return;
    }
    fprintf(file, "<section class=figures>\n");
    html_write_figure(file, speedup, "&times;", "Speed-up", isnan(step->low) ? "%s" : "%s: %.3f to %.3f",
                      comparison_interval(comparison), step->low, step->high);
    html_write_figure(file, report_number("%+.1f", 100 * step->relative), "%",
                      comparison->work != 1 ? "Time for equal tokens per device" : "Step time", "noise limit %.1f %%",
                      100 * step->margin);
    write_repeats(&comparison->repeats[0], "first", file);
    write_repeats(&comparison->repeats[1], "second", file);
    fprintf(file, "</section>\n");
}

static void write_settings(const struct comparison *comparison, FILE *file)
{
    fprintf(file, "<section class=card><h2>What differs</h2>\n");
    if (comparison->setting_count == 0) {
        fprintf(file, "<p class=soft>No known difference.</p></section>\n");
        return;
    }
    fprintf(file, "<div class=scroll><table class=settings><tr><th></th><th>first</th><th>second</th></tr>\n");
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        html_print(file, "<tr><th>%s%s</th><td class=text>%s</td><td class=text>%s</td></tr>\n", setting->name,
                   setting->is_obstacle ? " (not comparable)" : "", setting->first, setting->second);
    }
    fprintf(file, "</table></div></section>\n");
}

static void write_values(const struct comparison_row *row, int decimals, FILE *file)
{
    double change = row->second - row->first;
    fprintf(file, "<td class=n>%.*f s</td><td class=n>%.*f s</td>", decimals, row->first, decimals, row->second);
    if (fabs(change) < 0.5 * pow(10, -decimals)) {
        fprintf(file, "<td class=n>0</td></tr>\n");
    } else {
        fprintf(file, "<td class=n>%+.*f s</td></tr>\n", decimals, change);
    }
}

// Draws the change of a waterfall part or op family as a bar: left of the zero line if it became faster, right of the
// line if it became slower.
static void write_bar(double change, double maximum, double minimum, FILE *file)
{
    double width = maximum - minimum;
    html_write_bar(change < 0 ? BAR_COMPUTE : BAR_IDLE, width > 0 ? (fmin(change, 0.0) - minimum) / width : 0.0,
                   width > 0 ? fabs(change) / width : 0.0, file);
}

static void write_rows(const struct comparison_row *rows, int64_t count, FILE *file)
{
    double                maximum = 0.0, minimum = 0.0;
    struct comparison_row sum = {.name = "sum"};
    for (int64_t i = 0; i < count; i++) {
        maximum = fmax(maximum, rows[i].second - rows[i].first);
        minimum = fmin(minimum, rows[i].second - rows[i].first);
        sum.first += rows[i].first;
        sum.second += rows[i].second;
    }
    int decimals = report_decimals(sum.first);
    fprintf(file, "<div class=scroll><table class=changes><tr><th></th><th class=fall></th><th class=n>first</th>"
                  "<th class=n>second</th><th class=n>change</th></tr>\n");
    for (int64_t i = 0; i < count; i++) {
        if (rows[i].first != 0 || rows[i].second != 0) {
            html_print(file, "<tr><td>%s</td>", rows[i].name);
            if (fabs(rows[i].second - rows[i].first) < 0.5 * pow(10, -decimals)) {
                fprintf(file, "<td class=fall></td>");
            } else {
                write_bar(rows[i].second - rows[i].first, maximum, minimum, file);
            }
            write_values(&rows[i], decimals, file);
        }
    }
    fprintf(file, "<tr><th>sum</th><td class=fall></td>");
    write_values(&sum, decimals, file);
    fprintf(file, "</table></div>\n");
}

static void write_parts(const struct comparison *comparison, FILE *file)
{
    static const struct page_key keys[] = {{BAR_COMPUTE, "less"}, {BAR_IDLE, "more"}};
    fprintf(file, "<section class=card><h2>Where the difference is</h2>\n");
    if (comparison->part_count == 0) {
        fprintf(file, "<p class=soft>Unknown: a run has no traced step.</p></section>\n");
        return;
    }
    if (comparison->work != 1) {
        fprintf(file,
                "<p class=soft>A step of the second has %.3f times the tokens per device of the first: its times are "
                "scaled to equal tokens.</p>\n",
                comparison->work);
    }
    write_rows(comparison->parts, comparison->part_count, file);
    html_write_keys(keys, 2, file);
    fprintf(file, "<h3>Compute ops</h3>\n");
    write_rows(comparison->families, comparison->family_count, file);
    fprintf(file, "</section>\n");
}

static void write_memory(const struct comparison *comparison, FILE *file)
{
    fprintf(file, "<section class=card><h2>Memory <span class=soft>of rank 0</span></h2><div class=scroll><table><tr>"
                  "<th></th><th class=n>first</th><th class=n>second</th></tr>\n");
    for (int i = 0; i < STORAGE_COUNT; i++) {
        fprintf(file, "<tr><td>%s</td><td class=n>%s</td><td class=n>%s</td></tr>\n",
                plan_storage_name((enum storage)i), report_bytes((double)comparison->first->storage_bytes[i]),
                report_bytes((double)comparison->second->storage_bytes[i]));
    }
    fprintf(file, "</table></div></section>\n");
}

void comparison_write_html(const struct comparison *list, int64_t count, FILE *file)
{
    write_head(list, count, file);
    if (count > 1) {
        write_all(list, count, file);
    }
    for (int64_t i = 0; i < count; i++) {
        if (count > 1) {
            char name[160];
            html_print(file, "<h2>The first and %s</h2>\n", comparison_name(&list[i], name, sizeof(name)));
        }
        write_answer(&list[i], file);
        write_figures(&list[i], file);
        write_settings(&list[i], file);
        if (count == 1) {
            write_all(list, count, file);
        }
        write_parts(&list[i], file);
        write_memory(&list[i], file);
    }
    html_write_foot(file, "%s", list->second->version);
}
