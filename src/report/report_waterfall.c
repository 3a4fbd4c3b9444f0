// SPDX-License-Identifier: MIT
// The part of report.html that shows where the time of a traced step goes.
#include <inttypes.h>
#include <math.h>

#include "internal.h"

// The colour of a part's bar, as the style sheet numbers it.
enum bar { BAR_COMPUTE = 0, BAR_IDEAL = 1, BAR_REST = 2, BAR_IDLE = 3 };

static enum bar bar_of(int part)
{
    if (part == WATERFALL_IDEAL) {
        return BAR_IDEAL;
    }
    return part < WATERFALL_BUBBLE ? BAR_COMPUTE : part < WATERFALL_CONTENTION ? BAR_IDLE : BAR_REST;
}

// The most that the parts add up to from the first on: the width of the drawing.
static double find_reach(const struct waterfall *waterfall)
{
    double sum = 0.0, reach = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sum += waterfall->seconds[part];
        reach = fmax(reach, sum);
    }
    return reach;
}

// A bar begins where the one above it ends; one below zero goes back.
static void write_bars(const struct result_trace *trace, FILE *file)
{
    double sum = 0.0, reach = find_reach(&trace->waterfall);
    int    decimals = trace->step_seconds < 1.0 ? 6 : 3;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        double seconds = trace->waterfall.seconds[part];
        if (waterfall_shows(&trace->waterfall, (enum waterfall_part)part)) {
            fprintf(file,
                    "<tr><td>%s</td><td class=fall><i class=b%d style=\"margin-left:%.2f%%;width:%.2f%%\"></i></td>"
                    "<td class=n>%.*f s</td><td class=n>%.1f %%</td></tr>\n",
                    waterfall_part_names[part], (int)bar_of(part), 100 * fmin(sum, sum + seconds) / reach,
                    100 * fabs(seconds) / reach, decimals, seconds, 100 * seconds / trace->step_seconds);
        }
        sum += seconds;
    }
}

static void write_ops(const struct result *result, FILE *file)
{
    char text[32];
    fprintf(file, "<details><summary>Ops of that step</summary><div class=scroll><table><tr><th>kind</th><th>phase</th>"
                  "<th class=n>count</th><th class=n>seconds</th></tr>\n");
    for (int64_t i = 0; i < result->op_time_count; i++) {
        const struct result_op_time *ops = &result->op_times[i];
        fprintf(file, "<tr><td>");
        html_write_text(ops->kind, file);
        fprintf(file, "</td><td>");
        html_write_text(ops->phase, file);
        fprintf(file, "</td><td class=n>%" PRId64 "</td><td class=n>%s</td></tr>\n", ops->count,
                report_seconds(text, sizeof(text), ops->seconds));
    }
    fprintf(file, "</table></div></details>\n");
}

void html_write_waterfall(const struct result *result, FILE *file)
{
    const struct result_trace *trace = &result->trace;
    char                       text[32];
    fprintf(file, "<section class=card><h2>Where a step goes <span class=soft>rank %" PRId64 ", ", trace->rank);
    html_write_text(trace->source, file);
    fprintf(file, "</span></h2><div class=scroll><table>\n");
    write_bars(trace, file);
    fprintf(file, "<tr><th>step</th><td></td><td class=n>%s s</td><td class=n>100 %%</td></tr></table></div>\n",
            report_seconds(text, sizeof(text), trace->step_seconds));
    fprintf(file,
            "<p class=soft><span class=\"key b%d\"></span>the model's FLOPs at the peak &nbsp;<span class=\"key b%d\">"
            "</span>computing beyond that &nbsp;<span class=\"key b%d\"></span>waiting &nbsp;<span class=\"key b%d\">"
            "</span>the rest</p>\n",
            BAR_IDEAL, BAR_COMPUTE, BAR_IDLE, BAR_REST);
    write_ops(result, file);
    fprintf(file, "</section>\n");
}
