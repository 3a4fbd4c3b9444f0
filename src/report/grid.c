// SPDX-License-Identifier: MIT
// Prints a grid (a table of text cells) as text, Markdown, CSV and HTML.
#include "gswbench/grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "gswbench/version.h"
#include "internal.h"

static const char unknown[] = "-";

void grid_add(struct grid *grid, const char *cell)
{
    size_t bytes = strlen(cell) + 1;
    char  *copy  = arena_allocate(&grid->arena, bytes);
    text_printable(copy, bytes, cell);
    LIST_APPEND(grid->cells, grid->cell_count, copy);
}

void grid_add_integer(struct grid *grid, int64_t value)
{
    char cell[24];
    snprintf(cell, sizeof(cell), "%" PRId64, value);
    grid_add(grid, cell);
}

void grid_add_real(struct grid *grid, const char *format, double value)
{
    char cell[64];
    snprintf(cell, sizeof(cell), isfinite(value) ? format : unknown, value);
    grid_add(grid, cell);
}

void grid_free(struct grid *grid)
{
    free(grid->cells);
    arena_free(&grid->arena);
    *grid = (struct grid){.cells = NULL};
}

static int64_t count_rows(const struct grid *grid)
{
    return grid->cell_count / grid->column_count;
}

// Returns the text of a cell. Row -1 has the column titles.
static const char *find_cell(const struct grid *grid, int64_t row, int column)
{
    return row < 0 ? grid->columns[column].title : grid->cells[row * grid->column_count + column];
}

static bool has_value(const struct grid *grid, int column)
{
    bool has_value = false;
    for (int64_t row = 0; row < count_rows(grid) && !has_value; row++) {
        const char *cell = find_cell(grid, row, column);
        has_value        = cell[0] != '\0' && strcmp(cell, unknown) != 0;
    }
    return has_value;
}

void grid_write_text(const struct grid *grid, FILE *file)
{
    int *widths = memory_allocate((size_t)grid->column_count * sizeof(*widths));
    int  last   = 0;
    for (int column = 0; column < grid->column_count; column++) {
        for (int64_t row = -1; row < count_rows(grid) && (has_value(grid, column) || count_rows(grid) == 0); row++) {
            int length     = (int)strlen(find_cell(grid, row, column));
            widths[column] = length > widths[column] ? length : widths[column];
            last           = column;
        }
    }
    for (int64_t row = -1; row < count_rows(grid); row++) {
        for (int column = 0; column <= last; column++) {
            bool is_number = grid->columns[column].is_number;
            int  width     = column == last && !is_number ? 0 : widths[column];
            if (widths[column] > 0) {
                fprintf(file, is_number ? "%*s%s" : "%-*s%s", width, find_cell(grid, row, column),
                        column == last ? "\n" : "  ");
            }
        }
    }
    free(widths);
}

// Writes a Markdown cell. A vertical bar would end the cell, so it is escaped, and so are backslashes.
static void write_markdown_cell(const char *cell, FILE *file)
{
    fputs(" ", file);
    for (; *cell != '\0'; cell++) {
        fprintf(file, strchr("|\\", *cell) != NULL ? "\\%c" : "%c", *cell);
    }
    fputs(" |", file);
}

// Writes the grid as a Markdown table. Row -2 has the titles, and row -1 the rule below the titles.
void grid_write_markdown(const struct grid *grid, FILE *file)
{
    for (int64_t row = -2; row < count_rows(grid); row++) {
        fputs("|", file);
        for (int column = 0; column < grid->column_count; column++) {
            const char *rule = grid->columns[column].is_number ? "---:" : "---";
            write_markdown_cell(row == -1 ? rule : find_cell(grid, row, column), file);
        }
        fputs("\n", file);
    }
}

// Writes the grid as CSV. An unknown value becomes an empty cell.
void grid_write_csv(const struct grid *grid, FILE *file)
{
    for (int64_t row = -1; row < count_rows(grid); row++) {
        for (int column = 0; column < grid->column_count; column++) {
            const char *cell = row < 0 ? grid->columns[column].key : find_cell(grid, row, column);
            if (row >= 0 && strcmp(cell, unknown) == 0) {
                cell = "";
            }
            if (grid->columns[column].is_number) {
                fputs(cell, file);
            } else {
                csv_write_text(cell, file);
            }
            fputs(column == grid->column_count - 1 ? "\n" : ",", file);
        }
    }
}

// Writes a row of the HTML table. On a narrow screen, the style sheet turns the row into a list of its cells. Each cell
// then shows its attribute data-name as its heading.
static void write_row(const struct grid *grid, const bool *is_shown, int64_t row, FILE *file)
{
    fputs("<tr>", file);
    for (int column = 0; column < grid->column_count; column++) {
        const char *class = grid->columns[column].is_number ? " class=n" : "";
        if (!is_shown[column]) {
            continue;
        }
        if (row < 0) {
            fprintf(file, "<th%s>", class);
            html_print(file, "%s</th>", grid->columns[column].title);
        } else {
            fprintf(file, "<td%s", class);
            html_print(file, " data-name=\"%s\">%s</td>", grid->columns[column].title, find_cell(grid, row, column));
        }
    }
    fputs("</tr>\n", file);
}

static void write_card(const struct page_card *card, FILE *file)
{
    const struct grid *grid     = card->grid;
    bool              *is_shown = memory_allocate((size_t)grid->column_count * sizeof(*is_shown));
    for (int column = 0; column < grid->column_count; column++) {
        is_shown[column] = has_value(grid, column);
    }
    html_print(file, "<section class=card><h2>%s</h2>\n<div class=scroll><table class=grid>\n", card->heading);
    for (int64_t row = -1; row < count_rows(grid); row++) {
        write_row(grid, is_shown, row, file);
    }
    free(is_shown);
    fputs("</table></div>\n", file);
    if (card->remark[0] != '\0') {
        html_print(file, "<p class=soft>%s</p>\n", card->remark);
    }
    fputs("</section>\n", file);
}

void page_write(const struct page *page, FILE *file)
{
    html_write_head(page->title, file);
    html_write_text(page->subtitle, file);
    html_write_badge(page->style, page->verdict, file);
    html_print(file, "<section class=\"card answer\"><h2>%s</h2>", page->answer);
    html_print(file, page->detail[0] != '\0' ? "<p>%s</p>" : "%s", page->detail);
    fputs("</section>\n", file);
    for (int i = 0; i < page->card_count; i++) {
        if (count_rows(page->cards[i].grid) > 0) {
            write_card(&page->cards[i], file);
        }
    }
    html_write_foot(file, "%s", version_text);
}
