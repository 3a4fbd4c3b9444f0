// SPDX-License-Identifier: MIT
// page.c: what all pages have in common.
#ifndef GSWBENCH_REPORT_PAGE_H
#define GSWBENCH_REPORT_PAGE_H

#include <stdio.h>

// The colours of bars, as the style sheet numbers them.
enum { BAR_COMPUTE = 0, BAR_IDEAL = 1, BAR_REST = 2, BAR_IDLE = 3 };

// From the first byte to the title, behind which lines of what the page is of may stand; what is below it ends with a
// badge, or without one (NULL). The foot closes what <footer> has opened.
void html_write_head(const char *title, FILE *file);
void html_write_badge(const char *class, const char *word, FILE *file);
void html_write_foot(FILE *file);

// Foreign text.
void html_write_text(const char *from, FILE *file);

// A box with a figure.
void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
    __attribute__((format(printf, 5, 6)));

// A table's row of name and value.
void html_write_row(const char *name, const char *value, FILE *file);

// A cell with a bar, which begins where shares `from` of the width end.
void html_write_bar(int colour, double from, double share, FILE *file);

// What colours mean.
struct page_key {
    int         colour;
    const char *meaning;
};
void html_write_keys(const struct page_key *keys, int count, FILE *file);

// report_waterfall.c: of the four colours of a waterfall.
extern const struct page_key page_waterfall_keys[];

// Below a drawing over the step.
void html_write_seconds_axis(double seconds, double y, FILE *file);

#endif
