// SPDX-License-Identifier: MIT
// page.c: shared parts of the HTML pages.
#ifndef GSWBENCH_REPORT_PAGE_H
#define GSWBENCH_REPORT_PAGE_H

#include <stdio.h>

// Bar colours, as numbered in report.css.
enum { BAR_COMPUTE = 0, BAR_IDEAL = 1, BAR_REST = 2, BAR_IDLE = 3 };

// A page begins with html_write_head, then the text of its subtitle, then html_write_badge (word NULL: no badge). The
// caller opens <footer>; html_write_foot closes it.
void html_write_head(const char *title, FILE *file);
void html_write_badge(const char *class, const char *word, FILE *file);
void html_write_foot(FILE *file);

// Writes foreign text, escaped for HTML.
void html_write_text(const char *from, FILE *file);

// Writes a box with a figure.
void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
    __attribute__((format(printf, 5, 6)));

// Writes a table row with a name and a value.
void html_write_row(const char *name, const char *value, FILE *file);

// Writes a cell with a bar that begins at the fraction `from` of the width.
void html_write_bar(int colour, double from, double share, FILE *file);

// A legend entry.
struct page_key {
    int         colour;
    const char *meaning;
};
void html_write_keys(const struct page_key *keys, int count, FILE *file);

// report_waterfall.c: legend of the waterfall's four colours.
extern const struct page_key page_waterfall_keys[];

// Writes the time axis below a drawing.
void html_write_seconds_axis(double seconds, double y, FILE *file);

#endif
