// SPDX-License-Identifier: MIT
// Draws the traced step in report.html: its waterfall, its memory (weights, gradients and so on), and the actions of
// each pipeline stage.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

// Returns the bar colour of a waterfall part.
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

// Writes the waterfall of a result as one stacked bar with four colours. Its length is relative to the longest step. A
// negative part shortens the segment of its colour.
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

// Returns the maximum of the running sum of the parts, which is the width of the drawing.
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

// Draws a bar per waterfall part. Each bar begins where the previous bar ends; a negative part goes back. Further
// columns have the predicted seconds of the part, and the difference from them.
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

// Writes the last row of the waterfall table, with the times of the traced and the predicted step.
static void write_sum(const struct result *result, FILE *file)
{
    double traced   = result->trace.step_seconds;
    int    decimals = report_decimals(traced);
    fprintf(file, "<tr><th colspan=2>step</th>");
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
            trace->rank, report_name_source(trace), report_name_timing(trace));
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

enum { HEIGHT = 190, TOP = 8, AXIS = 24, TICKS = 3, STAGES_MAX = 256 };

// Kinds of memory that the timeline stacks, from bottom to top. All other kinds are too small to be visible.
static const struct layer {
    enum storage storage;
    int          colour;
    const char  *name;
} layers[] = {{STORAGE_WEIGHT, BAR_COMPUTE, "weights"},
              {STORAGE_GRADIENT, BAR_IDEAL, "gradients"},
              {STORAGE_OPTIMIZER, BAR_REST, "optimizer"},
              {STORAGE_ACTIVATION, BAR_IDLE, "activations"}};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

static double y_of(double bytes, double maximum)
{
    return HEIGHT - AXIS - (HEIGHT - TOP - AXIS) * bytes / maximum;
}

// Draws the axis of bytes. The distance of its ticks is a power of two, so most labels are whole numbers. Their ".00"
// is removed.
static void write_bytes_axis(double maximum, FILE *file)
{
    double tick = exp2(floor(log2(maximum / TICKS)));
    for (int i = 1; i * tick <= maximum; i++) {
        char text[32];
        number_bytes(text, sizeof(text), i * tick);
        char *digits = strstr(text, ".00");
        if (digits != NULL) {
            memmove(digits, digits + strlen(".00"), strlen(digits + strlen(".00")) + 1);
        }
        html_write_gridline(y_of(i * tick, maximum), text, file);
    }
}

// Draws the area of activation memory over the step. SVG paths cannot use percentages, so the path sits in a nested
// viewBox that stretches horizontally.
static void write_activations(const struct result *result, double base, double maximum, FILE *file)
{
    fprintf(file, "<svg viewBox=\"0 0 %" PRId64 " %d\" preserveAspectRatio=none><path class=b%d d=\"M0 %.1f",
            result->moment_count, HEIGHT, BAR_IDLE, y_of(base, maximum));
    for (int64_t i = 0; i < result->moment_count; i++) {
        fprintf(file, "V%.1fH%" PRId64, y_of(base + (double)result->moments[i].bytes, maximum), i + 1);
    }
    fprintf(file, "V%.1fZ\"/></svg>", y_of(base, maximum));
}

static void write_drawing(const struct result *result, double maximum, FILE *file)
{
    double below = 0;
    fprintf(file, "<div class=\"plot wide\"><svg height=%d role=img aria-label=\"Memory over the step\">", HEIGHT);
    for (int i = 0; i < LAYERS - 1; i++) {
        double bytes = (double)result->storage_bytes[layers[i].storage];
        double top   = y_of(below + bytes, maximum);
        fprintf(file, "<rect class=b%d x=0 y=%.1f width=100%% height=%.1f><title>%s</title></rect>", layers[i].colour,
                top, y_of(below, maximum) - top, layers[i].name);
        below += bytes;
    }
    write_activations(result, below, maximum, file);
    write_bytes_axis(maximum, file);
    double device = report_device_bytes(result);
    if (device > 0 && device <= maximum) {
        double y = y_of(device, maximum);
        fprintf(file, "<line class=roof x1=0 x2=100%% y1=%.1f y2=%.1f><title>device memory</title></line>", y, y);
    }
    html_write_seconds_axis(result->trace.step_seconds, HEIGHT - 6, file);
    fprintf(file, "</svg></div>\n");
}

static void write_memory(const struct result *result, FILE *file)
{
    struct page_key keys[LAYERS];
    double          maximum = 0.0, live = 0.0;
    for (int i = 0; i < LAYERS; i++) {
        keys[i] = (struct page_key){layers[i].colour, layers[i].name};
        maximum += (double)result->storage_bytes[layers[i].storage];
    }
    double device = report_device_bytes(result);
    if (device < 4 * maximum) {
        maximum = fmax(maximum, device * 1.02);
    }
    for (int64_t i = 0; i < result->moment_count; i++) {
        live = fmax(live, (double)result->moments[i].bytes);
    }
    fprintf(file, "<section class=card><h2>Memory over the step <span class=soft>of rank 0, seconds</span></h2>\n");
    write_drawing(result, maximum, file);
    html_write_keys(keys, LAYERS, file);
    fprintf(file, "<p class=soft>Peak of live activations: %s, in %s of planned memory.", report_bytes(live),
            report_bytes((double)result->storage_bytes[STORAGE_ACTIVATION]));
    if (device > 0) {
        fprintf(file, " Device: %s%s.", report_bytes(device), device <= maximum ? ", the line" : "");
    }
    fprintf(file, "</p></section>\n");
}

static int colour_of(const char *phase)
{
    return strcmp(phase, op_phase_name(PHASE_FORWARD)) == 0     ? BAR_IDEAL
           : strcmp(phase, op_phase_name(PHASE_BACKWARD)) == 0  ? BAR_COMPUTE
           : strcmp(phase, op_phase_name(PHASE_RECOMPUTE)) == 0 ? BAR_REST
                                                                : BAR_IDLE;
}

static void write_action(const struct result_action *action, double step, int y, int height, FILE *file)
{
    html_print(file, "<rect class=b%d x=%.3f%% y=%d width=%.3f%% height=%d><title>stage %" PRId64 ", %s",
               colour_of(action->phase), 100 * action->begin / step, y, 100 * (action->end - action->begin) / step,
               height, action->stage, action->phase);
    if (action->microbatch >= 0) {
        fprintf(file, ", microbatch %" PRId64 ", chunk %" PRId64, action->microbatch, action->chunk);
    }
    fprintf(file, ": %.6g to %.6g s</title></rect>\n", action->begin, action->end);
}

static void write_actions(const struct result *result, FILE *file)
{
    enum { ROW = 22, BAR = 16 };
    static const struct page_key keys[] = {{BAR_IDEAL, "forward"},
                                           {BAR_COMPUTE, "backward"},
                                           {BAR_REST, "recomputed"},
                                           {BAR_IDLE, "gradients and optimizer"}};
    int64_t                      stages = 0;
    for (int64_t i = 0; i < result->action_count; i++) {
        stages = number_max(stages, result->actions[i].stage + 1);
    }
    stages     = number_min(stages, STAGES_MAX);
    int height = (int)stages * ROW;
    fprintf(file,
            "<section class=card><h2>Pipeline <span class=soft>compute of each stage, seconds</span></h2>\n<div "
            "class=plot><svg height=%d role=img aria-label=\"Pipeline schedule\">\n",
            height + AXIS);
    for (int64_t i = 0; i < result->action_count; i++) {
        const struct result_action *action = &result->actions[i];
        if (action->stage < stages) {
            write_action(action, result->trace.step_seconds, (int)action->stage * ROW, BAR, file);
        }
    }
    for (int64_t stage = 0; stage < stages; stage++) {
        fprintf(file, "<text x=-8 y=%d text-anchor=end>%" PRId64 "</text>", (int)stage * ROW + 13, stage);
    }
    html_write_seconds_axis(result->trace.step_seconds, height + 12, file);
    fprintf(file, "</svg></div>\n");
    html_write_keys(keys, 4, file);
    fprintf(file, "</section>\n");
}

void html_write_timeline(const struct result *result, FILE *file)
{
    bool has_time = result->trace.step_seconds > 0;
    if (result->action_count > 0 && has_time) {
        write_actions(result, file);
    }
    if (result->moment_count > 0 && has_time && result->storage_bytes[STORAGE_ACTIVATION] > 0) {
        write_memory(result, file);
    }
}
