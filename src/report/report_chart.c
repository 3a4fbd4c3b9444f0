// SPDX-License-Identifier: MIT
// Draws a chart of a value over the steps as SVG. Its height is fixed. Horizontal positions are percentages, so the
// page sets the width.
#include <inttypes.h>
#include <math.h>

#include "internal.h"

enum { HEIGHT = 210, TOP = 10, BOTTOM = 26, TICKS = 6, TICK_LENGTH = 8, LABELS = 10, DOTS_MAX = 600 };

// The range of drawn values, and the axis ticks.
struct range {
    double low, high;
    double tick, tick_step;
    int    decimals;
};

// Chooses a tick step of 1, 2 or 5 times a power of ten, so that at most TICKS lines fit.
static void set_ticks(struct range *range)
{
    double rough     = (range->high - range->low) / TICKS;
    double power     = pow(10, floor(log10(rough)));
    double factor    = rough / power;
    range->tick_step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
    range->tick      = ceil(range->low / range->tick_step) * range->tick_step;
    range->decimals  = range->tick_step < 1 ? (int)ceil(-log10(range->tick_step) - 1e-9) : 0;
}

static double value_of(const struct chart *chart, int64_t step)
{
    return *(const double *)((const char *)&chart->result->steps[step] + chart->offset);
}

// Returns the vertical range of a chart. It is at least 2 % of the value, so that noise looks small.
static struct range range_of(const struct chart *chart)
{
    struct range range = {.low = INFINITY, .high = -INFINITY};
    for (int64_t i = isnan(chart->median) ? 0 : chart->result->figures.warmup_steps; i < chart->result->step_count;
         i++) {
        if (isfinite(value_of(chart, i))) {
            range.low  = fmin(range.low, value_of(chart, i));
            range.high = fmax(range.high, value_of(chart, i));
        }
    }
    if (!(range.low <= range.high)) {
        return (struct range){.low = 0, .high = 1, .tick_step = 1};
    }
    double middle = 0.5 * (range.low + range.high);
    double half   = fmax(0.55 * (range.high - range.low), fmax(0.01 * fabs(middle), 1e-12));
    range.low     = middle - half;
    range.high    = middle + half;
    set_ticks(&range);
    return range;
}

// Returns the horizontal position of a step in percent of the width.
static double x_of(const struct chart *chart, double step)
{
    return 1 + 98 * step / fmax(1, (double)(chart->result->step_count - 1));
}

static double y_of(const struct range *range, double value)
{
    double share = (fmin(fmax(value, range->low), range->high) - range->low) / (range->high - range->low);
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
}

static void write_axes(const struct chart *chart, const struct range *range, FILE *file)
{
    char text[32];
    for (double tick = range->tick; tick <= range->high && range->decimals <= 12; tick += range->tick_step) {
        if (snprintf(text, sizeof(text), "%.*f", range->decimals, tick) > TICK_LENGTH) {
            snprintf(text, sizeof(text), "%.1e", tick);
        }
        html_write_gridline(y_of(range, tick), text, file);
    }
    int64_t stride = 1;
    for (int i = 0; (chart->result->step_count - 1) / stride > LABELS; i++) {
        stride = stride * (i % 3 == 1 ? 5 : 4) / 2;    // 1, 2, 5, 10, 20, 50, ...
    }
    for (int64_t step = 0; step < chart->result->step_count; step += stride) {
        fprintf(file, "<text%s x=%.2f%% y=%d text-anchor=middle>%" PRId64 "</text>",
                step / stride % 2 == 1 ? " class=second" : "", x_of(chart, (double)step), HEIGHT - 8, step);
    }
}

static void write_background(const struct chart *chart, const struct range *range, FILE *file)
{
    int64_t warmup = chart->result->figures.warmup_steps;
    if (warmup > 0) {
        double right = warmup < chart->result->step_count ? x_of(chart, (double)warmup - 0.5) : 100;
        fprintf(file, "<rect class=warm x=0 y=%d width=%.2f%% height=%d><title>warm-up</title></rect>", TOP, right,
                HEIGHT - TOP - BOTTOM);
    }
    if (!isnan(chart->low)) {
        double top = y_of(range, chart->high);
        fprintf(file,
                "<rect class=band x=0 y=%.1f width=100%% height=%.1f><title>95%% interval of the median</title></rect>",
                top, fmax(y_of(range, chart->low) - top, 1));
    }
    if (!isnan(chart->median)) {
        double y = y_of(range, chart->median);
        fprintf(file, "<line class=median x1=0 x2=100%% y1=%.1f y2=%.1f />", y, y);
    }
}

// Draws the line of the chart. SVG paths cannot use percentages, so the path sits in a nested viewBox with
// preserveAspectRatio="none" and a non-scaling stroke.
static void write_line(const struct chart *chart, const struct range *range, FILE *file)
{
    bool pen_is_down = false;
    fprintf(file, "<svg viewBox=\"0 0 100 %d\" preserveAspectRatio=none><path class=series d=\"", HEIGHT);
    for (int64_t i = 0; i < chart->result->step_count; i++) {
        double value = value_of(chart, i);
        if (isfinite(value)) {
            fprintf(file, "%c%.2f %.1f", pen_is_down ? 'L' : 'M', x_of(chart, (double)i), y_of(range, value));
        }
        pen_is_down = isfinite(value);
    }
    fprintf(file, "\"/></svg>");
}

static void write_dots(const struct chart *chart, const struct range *range, FILE *file)
{
    for (int64_t i = 0; i < chart->result->step_count; i++) {
        double value  = value_of(chart, i);
        bool   is_odd = chart->marks_outliers && chart->result->steps[i].is_outlier;
        if (isfinite(value) && (is_odd || chart->result->step_count <= DOTS_MAX)) {
            fprintf(file,
                    "<circle class=\"dot%s\" cx=%.2f%% cy=%.1f r=%s><title>step %" PRId64 ": %.6g %s</title></circle>",
                    is_odd                                    ? " odd"
                    : i < chart->result->figures.warmup_steps ? " cold"
                                                              : "",
                    x_of(chart, (double)i), y_of(range, value), is_odd ? "4" : "2.4", i, value, chart->unit);
        }
    }
}

// Draws a histogram of step times. Its bins have equal widths from the fastest to the slowest measured step.
void chart_write_histogram(const double *values, int64_t count, FILE *file)
{
    enum { BINS = 24, TALL = 70, ROOM = 20 };
    int64_t bins[BINS] = {0}, highest = 1;
    double  low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        low  = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (!isfinite(high - low)) {
        return;    // there are no values, or a damaged file has infinite values
    }
    for (int64_t i = 0; i < count; i++) {
        int bin = high > low ? (int)fmin(BINS * (values[i] - low) / (high - low), BINS - 1) : BINS / 2;
        highest = ++bins[bin] > highest ? bins[bin] : highest;
    }
    fprintf(file,
            "<h3>Measured steps by time</h3><div class=\"plot wide\"><svg height=%d role=img "
            "aria-label=\"Histogram of step times\">",
            TALL + ROOM);
    for (int i = 0; i < BINS; i++) {
        double height = (double)(TALL * bins[i]) / (double)highest;
        fprintf(file,
                "<rect class=b%d x=%.2f%% y=%.1f width=%.2f%% height=%.1f><title>%s to %s s: %" PRId64
                " steps</title></rect>",
                BAR_COMPUTE, 100.0 * i / BINS, TALL - height, 95.0 / BINS, height,
                report_digits(low + (high - low) * i / BINS), report_digits(low + (high - low) * (i + 1) / BINS),
                bins[i]);
    }
    fprintf(file, "<text x=0 y=%d>%s s</text><text x=100%% y=%d text-anchor=end>%s s</text></svg></div>\n",
            TALL + ROOM - 4, report_digits(low), TALL + ROOM - 4, report_digits(high));
}

void chart_write(const struct chart *chart, FILE *file)
{
    struct range range = range_of(chart);
    fprintf(file, "<div class=plot><svg height=%d role=img aria-label=\"%s\">", HEIGHT, chart->title);
    write_background(chart, &range, file);
    write_axes(chart, &range, file);
    write_line(chart, &range, file);
    write_dots(chart, &range, file);
    fprintf(file, "</svg></div>\n");
}
