// SPDX-License-Identifier: MIT
// Draws the heat map of compute times. It has a row per rank (or range of ranks) and a column per step (or range of
// steps).
#include <inttypes.h>
#include <math.h>

#include "internal.h"

enum { ROW = 14, BOTTOM = 22, ROW_LABELS = 16, COLUMN_LABELS = 10 };

// Returns the CSS class for the excess of a rank's compute time over the median of the ranks with the same work. The
// limits are the same as in quality_check.c.
static const char *shade(double excess)
{
    return isnan(excess) ? "hx" : excess < 0.01 ? "h0" : excess < 0.03 ? "h1" : excess < 0.05 ? "h2" : "h3";
}

// Returns the number of rows. Cells are stored column by column, and each column has the same rows.
static int64_t count_rows(const struct result *result)
{
    int64_t rows = 1;
    while (rows < result->compute_time_count && result->compute_times[rows].step == result->compute_times[0].step) {
        rows++;
    }
    return rows;
}

static void write_span(const char *word, int64_t first, int64_t count, FILE *file)
{
    fprintf(file, "%s%s %" PRId64, word, count > 1 ? "s" : "", first);
    if (count > 1) {
        fprintf(file, " to %" PRId64, first + count - 1);
    }
}

// Draws one cell. x and width are percentages of the drawing's width.
static void write_cell(const struct result_compute_time *cell, double x, int64_t y, double width, FILE *file)
{
    fprintf(file, "<rect class=%s x=%.3f%% y=%" PRId64 " width=%.3f%% height=%d><title>", shade(cell->excess), x, y,
            width, ROW);
    write_span("rank", cell->rank, cell->ranks, file);
    write_span(", step", cell->step, cell->steps, file);
    fprintf(file, ": %.6g s", cell->seconds);
    if (!isnan(cell->excess)) {
        fprintf(file, ", %+.1f %%", 100 * cell->excess);
    }
    fprintf(file, "</title></rect>\n");
}

static void write_labels(const struct result *result, int64_t rows, int64_t columns, double width, FILE *file)
{
    for (int64_t row = 0; row < rows; row += (rows + ROW_LABELS - 1) / ROW_LABELS) {
        fprintf(file, "<text x=-8 y=%" PRId64 " text-anchor=end>%" PRId64 "</text>", row * ROW + 11,
                result->compute_times[row].rank);
    }
    int64_t stride = (columns + COLUMN_LABELS - 1) / COLUMN_LABELS;
    for (int64_t column = 0; column < columns; column += stride) {
        fprintf(file, "<text%s x=%.2f%% y=%" PRId64 " text-anchor=middle>%" PRId64 "</text>",
                column / stride % 2 == 1 ? " class=second" : "", ((double)column + 0.5) * width, rows * ROW + 16,
                result->compute_times[column * rows].step);
    }
    fputc('\n', file);
}

// Writes the legend of the colours. It has "not compared" only if a cell has that colour.
static void write_keys(const struct result *result, FILE *file)
{
    static const char *const keys[][2] = {
        {"h0", "below 1 %"}, {"h1", "1 to 3 %"}, {"h2", "3 to 5 %"}, {"h3", "5 % and more"}, {"hx", "not compared"}};
    bool is_compared = true;
    for (int64_t i = 0; i < result->compute_time_count; i++) {
        is_compared = is_compared && !isnan(result->compute_times[i].excess);
    }
    fprintf(file, "<p class=\"soft keys\"><span>Above the median of ranks with the same work:</span>");
    for (int i = 0; i < (is_compared ? 4 : 5); i++) {
        fprintf(file, "<span><i class=\"key %s\"></i>%s</span>", keys[i][0], keys[i][1]);
    }
    fprintf(file, "</p>");
}

void html_write_compute_times(const struct result *result, FILE *file)
{
    if (result->compute_time_count == 0) {
        return;
    }
    int64_t rows = count_rows(result), columns = result->compute_time_count / rows;
    double  width = 100.0 / (double)columns;
    fprintf(file,
            "<section class=card><h2>Compute time <span class=soft>of each rank (down) in each measured step (across), "
            "without stalls</span></h2>\n<div class=plot><svg class=map height=%" PRId64
            " role=img aria-label=\"Compute time, rank by step\">\n",
            rows * ROW + BOTTOM);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t column = i / rows;
        write_cell(&result->compute_times[i], (double)column * width, i % rows * ROW, width, file);
    }
    write_labels(result, rows, columns, width, file);
    fprintf(file, "</svg></div>\n");
    write_keys(result, file);
    fprintf(file, "</section>\n");
}
