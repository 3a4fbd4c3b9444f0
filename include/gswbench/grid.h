// SPDX-License-Identifier: MIT
// A grid of text cells, printed as text, Markdown or CSV, and HTML pages of such grids. Text and pages leave out a
// column if all its cells are empty or "-" (unknown).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/arena.h"

// title: column heading; key: column name in CSV. Numbers are aligned to the right.
struct grid_column {
    const char *title, *key;
    bool        is_number;
};

struct grid {
    const struct grid_column *columns;
    int                       column_count;
    const char              **cells;    // row by row
    int64_t                   cell_count;
    struct arena              arena;
};

// Makes an empty grid with these columns.
#define GRID_OF(of) ((struct grid){.columns = (of), .column_count = (int)(sizeof(of) / sizeof((of)[0]))})

// grid_add appends a cell with a printable copy of the text; "-" means an unknown value. grid_add_real appends a
// number, or "-" if it is not finite.
void grid_add(struct grid *grid, const char *cell);
void grid_add_integer(struct grid *grid, int64_t value);
void grid_add_real(struct grid *grid, const char *format, double value) __attribute__((format(printf, 2, 0)));
void grid_free(struct grid *grid);

typedef void grid_writer(const struct grid *grid, FILE *file);
void         grid_write_text(const struct grid *grid, FILE *file);
void         grid_write_markdown(const struct grid *grid, FILE *file);
void         grid_write_csv(const struct grid *grid, FILE *file);

// An HTML page with the answer in one sentence, and then a card for each grid.
struct page_card {
    const char        *heading, *remark;    // remark: "": none
    const struct grid *grid;
};
struct page {
    const char             *title, *subtitle;
    const char             *verdict, *style;    // text of the badge, and its CSS class in report.css; NULL: no badge
    const char             *answer, *detail;    // detail: "": none
    const struct page_card *cards;
    int                     card_count;
};
void page_write(const struct page *page, FILE *file);
