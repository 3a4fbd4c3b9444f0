// SPDX-License-Identifier: MIT
// Draws the roofline plot: achieved FLOP/s of the op families (such as "norm") against the peak and the memory
// bandwidth.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/op.h"
#include "gswbench/text.h"
#include "internal.h"

enum { FAMILIES = OP_COUNT, HEIGHT = 220, TOP = 8, AXIS = 24 };

struct family {
    char   name[24];
    double seconds, flops, bytes;
    int    colour;    // colour of the family's point and bar
};

struct roofline {
    struct family family[FAMILIES];
    int           count;
    double        peak, bandwidth;    // FLOP/s and bytes/s; NaN: unknown
};

static struct family *find_family(struct roofline *roofline, const char *name)
{
    for (int i = 0; i < roofline->count; i++) {
        if (strcmp(roofline->family[i].name, name) == 0) {
            return &roofline->family[i];
        }
    }
    struct family *family = &roofline->family[roofline->count++];
    text_copy(family->name, sizeof(family->name), name);
    family->colour = BAR_REST;
    return family;
}

// Sums seconds, FLOPs and bytes of the compute ops by family.
static void fill(struct roofline *roofline, const struct result *result)
{
    *roofline = (struct roofline){.peak = result->expectation.peak, .bandwidth = result->expectation.memory_bandwidth};
    for (int64_t i = 0; i < result->op_time_count; i++) {
        const struct result_op_time *ops = &result->op_times[i];
        char                         name[sizeof(ops->kind)];
        report_name_family(ops->kind, name, sizeof(name));
        struct family *family = report_computes(ops->kind) ? find_family(roofline, name) : NULL;
        if (family != NULL) {
            family->seconds += ops->seconds;
            family->flops += ops->flops;
            family->bytes += ops->bytes;
        }
    }
}

// Returns the FLOP/s that an op with this arithmetic intensity (FLOPs per byte) can reach.
static double roof_of(const struct roofline *roofline, double intensity)
{
    return fmin(roofline->peak, roofline->bandwidth * intensity);
}

// Ranges of the two logarithmic axes: intensity (left, right) and FLOP/s (low, high).
struct frame {
    double left, right, low, high;
};

static double x_of(const struct frame *frame, double intensity)
{
    return 100 * log(intensity / frame->left) / log(frame->right / frame->left);
}

static double y_of(const struct frame *frame, double rate)
{
    return TOP + (HEIGHT - TOP - AXIS) * log(frame->high / rate) / log(frame->high / frame->low);
}

// Returns whether the values of an op family are possible. Rejects values from a damaged file that no machine reaches.
static bool is_possible(double flops, double bytes, double seconds)
{
    double rate = flops / seconds, intensity = flops / bytes;
    return rate > 1 && rate < 1e21 && intensity > 1e-9 && intensity < 1e12;
}

static bool is_drawn(const struct family *family)
{
    return is_possible(family->flops, family->bytes, family->seconds);
}

// Returns axis ranges that contain the ridge point and the point of every op family.
static struct frame find_frame(const struct roofline *roofline)
{
    double       ridge = roofline->peak / roofline->bandwidth;
    struct frame frame = {ridge / 4, ridge * 4, roofline->peak / 8, roofline->peak};
    for (int i = 0; i < roofline->count; i++) {
        const struct family *family = &roofline->family[i];
        if (is_drawn(family)) {
            frame.left  = fmin(frame.left, family->flops / family->bytes);
            frame.right = fmax(frame.right, family->flops / family->bytes);
            frame.low   = fmin(frame.low, family->flops / family->seconds);
            frame.high  = fmax(frame.high, family->flops / family->seconds);
        }
    }
    return (struct frame){pow(10, floor(log10(frame.left))), pow(10, ceil(log10(frame.right) + 1e-9)),
                          pow(10, floor(log10(frame.low))), pow(10, ceil(log10(frame.high) + 1e-9))};
}

static void write_axes(const struct frame *frame, FILE *file)
{
    for (double rate = frame->low; rate <= frame->high * 1.01; rate *= 10) {
        char text[32];
        snprintf(text, sizeof(text), "%g", rate / 1e12);
        html_write_gridline(y_of(frame, rate), text, file);
    }
    for (double intensity = frame->left; intensity <= frame->right * 1.01; intensity *= 10) {
        double x = x_of(frame, intensity);
        fprintf(file, "<line class=grid x1=%.2f%% x2=%.2f%% y1=%d y2=%d /><text x=%.2f%% y=%d text-anchor=%s>%g</text>",
                x, x, TOP, HEIGHT - AXIS, x, HEIGHT - 6,
                x < 1    ? "start"
                : x > 99 ? "end"
                         : "middle",
                intensity);
    }
}

static void write_roof(const struct roofline *roofline, const struct frame *frame, FILE *file)
{
    double ridge = x_of(frame, roofline->peak / roofline->bandwidth), top = y_of(frame, roofline->peak);
    double edge = roof_of(roofline, frame->left);
    double left = edge >= frame->low ? 0.0 : x_of(frame, frame->low / roofline->bandwidth);
    fprintf(file,
            "<line class=roof x1=%.2f%% y1=%.1f x2=%.2f%% y2=%.1f /><line class=roof x1=%.2f%% y1=%.1f x2=100%% "
            "y2=%.1f />",
            left, y_of(frame, fmax(edge, frame->low)), ridge, top, ridge, top, top);
}

static void write_drawing(struct roofline *roofline, FILE *file)
{
    enum { COLOURS = 3 };
    static const int colours[COLOURS] = {BAR_COMPUTE, BAR_IDEAL, BAR_IDLE};
    struct page_key  keys[COLOURS + 1];
    struct frame     frame = find_frame(roofline);
    int              count = 0;
    fprintf(file, "<div class=plot><svg height=%d role=img aria-label=\"Roofline\">", HEIGHT);
    write_axes(&frame, file);
    write_roof(roofline, &frame, file);
    for (int i = 0; i < roofline->count && count < COLOURS; i++) {
        struct family *family = &roofline->family[i];
        if (is_drawn(family)) {
            html_print(file, "<circle class=b%d cx=%.2f%% cy=%.1f r=6><title>%s</title></circle>", colours[count],
                       x_of(&frame, family->flops / family->bytes), y_of(&frame, family->flops / family->seconds),
                       family->name);
            family->colour = colours[count];
            keys[count++]  = (struct page_key){family->colour, family->name};
        }
    }
    fprintf(file, "</svg></div>\n");
    keys[count] = (struct page_key){BAR_REST, "other ops, in the table only"};
    html_write_keys(keys, count + 1, file);
    fprintf(file, "<p class=soft>TFLOP/s over FLOP/byte, logarithmic axes; the line is the limit of peak and memory "
                  "bandwidth.</p>\n");
}

static double known(double rate)
{
    return rate > 0 ? rate : NAN;
}

// Writes the table row of an op family. FLOP/s are compared with the roof; a family without FLOPs is compared with the
// memory bandwidth.
static void write_family(const struct roofline *roofline, const struct family *family, bool has_roof, FILE *file)
{
    double intensity = family->flops / family->bytes;
    double share     = family->flops > 0 ? family->flops / family->seconds / roof_of(roofline, intensity)
                                         : family->bytes / family->seconds / roofline->bandwidth;
    html_print(file, "<tr><td>%s</td>", family->name);
    if (has_roof) {
        html_write_bar(family->colour, 0.0, isnan(share) ? 0.0 : fmin(share, 1.0), file);
        html_write_number(file, NULL, "%.1f %%", 100 * share);
    }
    html_write_number(file, NULL, "%.4g TFLOP/s", known(family->flops / family->seconds / 1e12));
    html_write_number(file, NULL, "%.4g GB/s", known(family->bytes / family->seconds / 1e9));
    html_write_number(file, NULL, "%.4g ", known(family->flops / family->bytes));
    fprintf(file, "</tr>\n");
}

void html_write_roofline(const struct result *result, FILE *file)
{
    struct roofline roofline;
    fill(&roofline, result);
    bool is_known = is_possible(roofline.peak, roofline.bandwidth, 1.0);
    if (roofline.count == 0) {
        return;
    }
    fprintf(file, "<section class=card><h2>Roofline <span class=soft>");
    if (is_known) {
        html_print(file, "%.4g TFLOP/s and %.4g GB/s of %s", roofline.peak / 1e12, roofline.bandwidth / 1e9,
                   result->expectation.profile);
    } else {
        fprintf(file, "no peak of this machine is known");
    }
    fprintf(file, "</span></h2>\n");
    if (is_known) {
        write_drawing(&roofline, file);
    }
    fprintf(file,
            "<div class=scroll><table class=roofline><tr><th>ops</th>%s<th class=n>compute</th><th "
            "class=n>memory</th><th class=n>FLOP/byte</th></tr>\n",
            is_known ? "<th></th><th class=n>of the roof</th>" : "");
    for (int i = 0; i < roofline.count; i++) {
        if (roofline.family[i].seconds > 0) {
            write_family(&roofline, &roofline.family[i], is_known, file);
        }
    }
    fprintf(file, "</table></div></section>\n");
}
