// SPDX-License-Identifier: MIT
// What ranks computed in which step, as a map: a row for a rank, a column for a step, or for several of them.
#include <inttypes.h>
#include <math.h>

#include "internal.h"

enum { WIDTH = 980, LEFT = 64, RIGHT = 12, ROW = 14, BOTTOM = 22, LABELS = 16 };

// By how much more than the median of its class, as the checks and the comparisons of runs count it.
static const char *shade(double excess)
{
    return isnan(excess) ? "hx" : excess < 0.01 ? "h0" : excess < 0.03 ? "h1" : excess < 0.05 ? "h2" : "h3";
}

// The cells of a column follow each other, and each column has the same rows.
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

static void write_cell(const struct result_compute_time *cell, double x, int64_t y, double width, FILE *file)
{
    fprintf(file, "<rect class=%s x=%.1f y=%" PRId64 " width=%.1f height=%d><title>", shade(cell->excess), x, y,
            fmax(width - 1, 1), ROW - 1);
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
    for (int64_t row = 0; row < rows; row += (rows + LABELS - 1) / LABELS) {
        fprintf(file, "<text x=%d y=%" PRId64 " text-anchor=end>rank %" PRId64 "</text>", LEFT - 8, row * ROW + 11,
                result->compute_times[row].rank);
    }
    for (int64_t column = 0; column < columns; column += (columns + LABELS - 1) / LABELS) {
        fprintf(file, "<text x=%.1f y=%" PRId64 ">%" PRId64 "</text>", LEFT + (double)column * width, rows * ROW + 14,
                result->compute_times[column * rows].step);
    }
    fputc('\n', file);
}

void html_write_compute_times(const struct result *result, FILE *file)
{
    if (result->compute_time_count == 0) {
        return;
    }
    int64_t rows = count_rows(result), columns = result->compute_time_count / rows;
    double  width = (double)(WIDTH - LEFT - RIGHT) / (double)columns;
    fprintf(
        file,
        "<section class=card><h2>Computing <span class=soft>of each rank in each measured step, without waiting for "
        "others</span></h2>\n<svg viewBox=\"0 0 %d %" PRId64 "\" role=img aria-label=\"Computing, rank by step\">\n",
        WIDTH, rows * ROW + BOTTOM);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t column = i / rows;
        write_cell(&result->compute_times[i], LEFT + (double)column * width, i % rows * ROW, width, file);
    }
    write_labels(result, rows, columns, width, file);
    fprintf(file, "</svg>\n<p class=soft>Longer than the median of the ranks that compute the same: "
                  "<svg class=keys viewBox=\"0 0 300 14\">");
    static const char *const words[] = {"below 1 %", "1 to 3 %", "3 to 5 %", "5 % and more"};
    for (int i = 0; i < 4; i++) {
        fprintf(file, "<rect class=h%d x=%d y=2 width=10 height=10 /><text x=%d y=11>%s</text>", i, 75 * i, 75 * i + 14,
                words[i]);
    }
    fprintf(file, "</svg></p></section>\n");
}
