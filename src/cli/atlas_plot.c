// SPDX-License-Identifier: MIT
// docs/atlas.svg: predicted over published seconds of each row, on logarithmic axes. Colours follow the reader's
// scheme, and each point has its row as a tooltip.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "atlas.h"

// Position of the plot on the page, and the length of ticks.
enum { LEFT = 64, TOP = 40, SIDE = 560, RIGHT_MARGIN = 24, BOTTOM_MARGIN = 56, TICK = 6 };

struct scale {
    double low, high;    // seconds at both ends, for both axes
};

static const char style[] = "<style>\n"
                            "text { font: 13px sans-serif; fill: #24292f; }\n"
                            ".frame, .grid, .equal, .tenth { fill: none; stroke: #57606a; }\n"
                            ".grid { stroke: #d0d7de; stroke-width: 0.5; }\n"
                            ".tenth { stroke-dasharray: 5 4; }\n"
                            ".dense { fill: #0550ae; fill-opacity: 0.55; }\n"
                            ".experts { fill: #bc4c00; fill-opacity: 0.8; }\n"
                            "@media (prefers-color-scheme: dark) {\n"
                            "text { fill: #e6edf3; }\n"
                            ".frame, .equal, .tenth { stroke: #9198a1; }\n"
                            ".grid { stroke: #3d444d; }\n"
                            ".dense { fill: #79c0ff; }\n"
                            ".experts { fill: #ffa657; }\n"
                            "}\n"
                            "</style>\n";

static double across(const struct scale *scale, double seconds)
{
    return LEFT + SIDE * log(seconds / scale->low) / log(scale->high / scale->low);
}

static double down(const struct scale *scale, double seconds)
{
    return TOP + SIDE - (across(scale, seconds) - LEFT);
}

static double round_seconds(double seconds, bool up)
{
    const double steps[]   = {1.0, 2.0, 5.0, 10.0};
    double       magnitude = pow(10.0, floor(log10(seconds))), rounded = magnitude;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rounded = steps[i] * magnitude <= seconds ? steps[i] * magnitude : rounded;
        if (up && steps[i] * magnitude >= seconds) {
            return steps[i] * magnitude;
        }
    }
    return rounded;
}

// Covers all rows, with a margin of 10 %.
static struct scale find_scale(const struct atlas *atlas)
{
    struct scale scale = {.low = INFINITY, .high = 0.0};
    for (int64_t i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        scale.low                   = fmin(scale.low, fmin(row->published_seconds, row->predicted_seconds));
        scale.high                  = fmax(scale.high, fmax(row->published_seconds, row->predicted_seconds));
    }
    return (struct scale){.low = round_seconds(scale.low / 1.1, false), .high = round_seconds(scale.high * 1.1, true)};
}

static void write_ticks(const struct scale *scale, FILE *file)
{
    for (double seconds = scale->low; seconds <= scale->high * 1.001; seconds = round_seconds(seconds * 1.5, true)) {
        double x = across(scale, seconds), y = down(scale, seconds);
        fprintf(file, "<path class=\"grid\" d=\"M%.1f %dV%d M%d %.1fH%d\"/>\n", x, TOP, TOP + SIDE, LEFT, y,
                LEFT + SIDE);
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x, TOP + SIDE + 3 * TICK,
                seconds);
        fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - TICK, y + 4.0, seconds);
    }
}

// Draws the line on which the prediction is the published time times factor, clipped to the plot.
static void write_line(const struct scale *scale, const char *class, double factor, FILE *file)
{
    double from = fmax(scale->low, scale->low / factor), to = fmin(scale->high, scale->high / factor);
    fprintf(file, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class, across(scale, from),
            down(scale, from * factor), across(scale, to), down(scale, to * factor));
}

static void write_legend(const struct atlas *atlas, FILE *file)
{
    int experts = 0;
    for (int64_t i = 0; i < atlas->count; i++) {
        experts += atlas->rows[i].has_experts;
    }
    fprintf(
        file,
        "<circle class=\"dense\" cx=\"%d\" cy=\"22\" r=\"4\"/><text x=\"%d\" y=\"26\">%d rows without experts</text>\n"
        "<path class=\"experts\" d=\"M%d 17l5 5-5 5-5-5z\"/><text x=\"%d\" y=\"26\">%d with experts</text>\n"
        "<path class=\"tenth\" d=\"M%d 22h24\"/><text x=\"%d\" y=\"26\">10 %% off</text>\n",
        LEFT + 8, LEFT + 20, (int)atlas->count - experts, LEFT + 208, LEFT + 220, experts, LEFT + 360, LEFT + 392);
}

// Escapes text for XML.
static void put_text(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        if (strchr("<>&", *text) != NULL) {
            fprintf(file, "&#%d;", *text);
        } else {
            fputc(*text, file);
        }
    }
}

static void write_title(const struct atlas_row *row, FILE *file)
{
    fprintf(file, "<title>");
    put_text(row->config, file);
    fprintf(file, ", %" PRId64 " ", row->ranks);
    put_text(row->gpu, file);
    fprintf(file, ", %s%s", row->precision, row->variant[0] != '\0' ? " " : "");
    put_text(row->variant, file);
    fprintf(file, ": published %.4g s, predicted %.4g s, %+.1f %%</title>", row->published_seconds,
            row->predicted_seconds, row->error_percent);
}

static void write_point(const struct scale *scale, const struct atlas_row *row, FILE *file)
{
    double x = across(scale, row->published_seconds), y = down(scale, row->predicted_seconds);
    if (row->has_experts) {
        fprintf(file, "<path class=\"experts\" d=\"M%.1f %.1fl5 5-5 5-5-5z\">", x, y - 5.0);
    } else {
        fprintf(file, "<circle class=\"dense\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">", x, y);
    }
    write_title(row, file);
    fprintf(file, "</%s>\n", row->has_experts ? "path" : "circle");
}

void atlas_write_plot(const struct atlas *atlas, FILE *file)
{
    struct scale scale = find_scale(atlas);
    int          width = LEFT + SIDE + RIGHT_MARGIN, height = TOP + SIDE + BOTTOM_MARGIN;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
            "aria-label=\"Predicted against published step times\">\n%s",
            width, height, width, height, style);
    write_ticks(&scale, file);
    fprintf(file, "<path class=\"frame\" d=\"M%d %dh%dv%dh-%dz\"/>\n", LEFT, TOP, SIDE, SIDE, SIDE);
    write_line(&scale, "equal", 1.0, file);
    write_line(&scale, "tenth", 1.1, file);
    write_line(&scale, "tenth", 0.9, file);
    for (int pass = 0; pass < 2; pass++) {    // the fewer rows with experts are drawn on top
        for (int64_t i = 0; i < atlas->count; i++) {
            if (atlas->rows[i].has_experts == (pass == 1)) {
                write_point(&scale, &atlas->rows[i], file);
            }
        }
    }
    write_legend(atlas, file);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">published, seconds a step</text>\n", LEFT + SIDE / 2,
            height - 12);
    fprintf(
        file,
        "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">predicted, seconds a step</text>\n",
        TOP + SIDE / 2);
    fprintf(file, "</svg>\n");
}
