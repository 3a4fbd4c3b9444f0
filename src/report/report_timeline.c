// SPDX-License-Identifier: MIT
// Draws the timeline of the traced step: memory by storage, and the actions of each pipeline stage.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

enum { HEIGHT = 190, TOP = 8, AXIS = 24, TICKS = 3, STAGES_MAX = 256 };

// Stacked areas from bottom to top. Other storages are too small to be visible.
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

// Ticks are powers of two, which number_bytes prints without decimals.
static void write_bytes_axis(double maximum, FILE *file)
{
    double tick = exp2(floor(log2(maximum / TICKS)));
    for (int i = 1; i * tick <= maximum; i++) {
        char   text[32];
        double y = y_of(i * tick, maximum);
        number_bytes(text, sizeof(text), i * tick);
        char *digits = strstr(text, ".00");
        fprintf(file,
                "<line class=grid x1=0 x2=100%% y1=%.1f y2=%.1f /><text x=-8 y=%.1f text-anchor=end>%.*s%s</text>", y,
                y, y + 4, digits != NULL ? (int)(digits - text) : (int)strlen(text), text,
                digits != NULL ? digits + strlen(".00") : "");
    }
}

// SVG paths cannot use percentages, so the path sits in a nested viewBox that stretches horizontally.
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

static int64_t count_stages(const struct result *result)
{
    int64_t stages = 0;
    for (int64_t i = 0; i < result->action_count; i++) {
        stages = result->actions[i].stage >= stages ? result->actions[i].stage + 1 : stages;
    }
    return stages < STAGES_MAX ? stages : STAGES_MAX;
}

static void write_actions(const struct result *result, FILE *file)
{
    enum { ROW = 22, BAR = 16 };
    static const struct page_key keys[] = {{BAR_IDEAL, "forward"},
                                           {BAR_COMPUTE, "backward"},
                                           {BAR_REST, "recomputed"},
                                           {BAR_IDLE, "gradients and optimizer"}};
    int64_t                      stages = count_stages(result);
    int                          height = (int)stages * ROW;
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
