// SPDX-License-Identifier: MIT
// Draws the waterfall of the traced step in report.html.
#include <inttypes.h>
#include <math.h>

#include "internal.h"

// Returns the bar colour of a part.
static int bar_of(int part)
{
    if (part == WATERFALL_IDEAL) {
        return BAR_IDEAL;
    }
    return part < WATERFALL_BUBBLE ? BAR_COMPUTE : part < WATERFALL_CONTENTION ? BAR_IDLE : BAR_REST;
}

const struct page_key page_waterfall_keys[] = {{BAR_IDEAL, "ideal compute"},
                                               {BAR_COMPUTE, "compute overhead"},
                                               {BAR_IDLE, "bubble and exposed communication"},
                                               {BAR_REST, "other"}};

// The bar's length is relative to the longest step. A negative part shortens the bar of its colour.
void html_write_stack(const struct result *result, double longest, FILE *file)
{
    double sums[4] = {0.0};
    double scale   = result->figures.step.median / result->trace.step_seconds / longest;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sums[bar_of(part)] += result->trace.waterfall.seconds[part];
    }
    fprintf(file, "<td class=fall><span class=stack>");
    for (int i = 0; i < 4 && scale > 0 && isfinite(scale); i++) {
        int colour = page_waterfall_keys[i].colour;
        fprintf(file, "<i class=b%d style=\"width:%.2f%%\"></i>", colour, 100 * fmax(sums[colour], 0.0) * scale);
    }
    fprintf(file, "</span></td>");
}

// Returns the maximum of the running sum: the width of the drawing.
static double find_reach(const struct waterfall *waterfall)
{
    double sum = 0.0, reach = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sum += waterfall->seconds[part];
        reach = fmax(reach, sum);
    }
    return reach;
}

static void write_seconds(double seconds, int decimals, const char *sign, FILE *file)
{
    fprintf(file, "<td class=n>%s%.*f s</td>", seconds >= 0.0 ? sign : "", decimals, seconds);
}

// Each bar begins where the previous one ends; a negative part goes back. A column has the predicted parts.
static void write_bars(const struct result *result, FILE *file)
{
    const struct result_trace *trace    = &result->trace;
    const struct waterfall    *expected = report_expected_parts(result);
    double                     sum = 0.0, reach = find_reach(&trace->waterfall);
    int                        decimals = report_decimals(trace->step_seconds);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        double seconds = trace->waterfall.seconds[part];
        if (waterfall_shows(&trace->waterfall, (enum waterfall_part)part) ||
            (expected != NULL && waterfall_shows(expected, (enum waterfall_part)part))) {
            fprintf(file, "<tr><td>%s</td>", waterfall_part_names[part]);
            html_write_bar(bar_of(part), fmin(sum, sum + seconds) / reach, fabs(seconds) / reach, file);
            write_seconds(seconds, decimals, "", file);
            fprintf(file, "<td class=n>%.1f %%</td>", 100 * seconds / trace->step_seconds);
            if (expected != NULL) {
                write_seconds(expected->seconds[part], decimals, "", file);
                write_seconds(seconds - expected->seconds[part], decimals, "+", file);
            }
            fprintf(file, "</tr>\n");
        }
        sum += seconds;
    }
}

// Writes the last row: the traced and the predicted step.
static void write_sum(const struct result *result, FILE *file)
{
    double traced   = result->trace.step_seconds;
    int    decimals = report_decimals(traced);
    fprintf(file, "<tr><th>step</th><td></td>");
    write_seconds(traced, decimals, "", file);
    fprintf(file, "<td class=n>100 %%</td>");
    if (report_expected_parts(result) != NULL) {
        write_seconds(result->expectation.step_seconds, decimals, "", file);
        write_seconds(traced - result->expectation.step_seconds, decimals, "+", file);
    }
    fprintf(file, "</tr></table></div>\n");
}

static void write_ops(const struct result *result, FILE *file)
{
    fprintf(file, "<details><summary>Ops of that step</summary><div class=scroll><table><tr><th>kind</th><th>phase</th>"
                  "<th class=n>count</th><th class=n>seconds</th></tr>\n");
    for (int64_t i = 0; i < result->op_time_count; i++) {
        const struct result_op_time *ops = &result->op_times[i];
        html_print(file, "<tr><td>%s</td><td>%s</td><td class=n>%" PRId64 "</td><td class=n>%s</td></tr>\n", ops->kind,
                   ops->phase, ops->count, report_digits(ops->seconds));
    }
    fprintf(file, "</table></div></details>\n");
}

void html_write_waterfall(const struct result *result, FILE *file)
{
    const struct result_trace *trace = &result->trace;
    fprintf(file,
            "<section class=card><h2>Where a step goes <span class=soft>rank %" PRId64
            ", %s%s</span></h2><div class=scroll><table class=parts>\n",
            trace->rank, result_source_names[trace->source], report_name_timing(trace));
    if (report_expected_parts(result) != NULL) {
        fprintf(file, "<tr><th></th><th></th><th class=n>measured</th><th></th><th class=n>expected</th><th "
                      "class=n>difference</th></tr>\n");
    }
    write_bars(result, file);
    write_sum(result, file);
    html_write_keys(page_waterfall_keys, 4, file);
    write_ops(result, file);
    fprintf(file, "</section>\n");
}
