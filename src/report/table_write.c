// SPDX-License-Identifier: MIT
// A results table as text, Markdown and CSV; columns[] describes every column.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "gswbench/table.h"
#include "gswbench/text.h"
#include "internal.h"

enum { CELL_BYTES = 128 };

typedef void write_cell(const struct table_row *row, char cell[CELL_BYTES]);

static void put_percent(double share, char cell[CELL_BYTES])
{
    snprintf(cell, CELL_BYTES, isnan(share) ? "-" : "%.1f", 100.0 * share);
}

static void put_ratio(double ratio, char cell[CELL_BYTES])
{
    snprintf(cell, CELL_BYTES, isnan(ratio) ? "-" : "%.3f", ratio);
}

static void put_config(const struct table_row *row, char cell[CELL_BYTES])
{
    report_safe(cell, CELL_BYTES, row->key.config);
}

static void put_ranks(const struct table_row *row, char cell[CELL_BYTES])
{
    snprintf(cell, CELL_BYTES, "%" PRId64, row->key.ranks);
}

static void put_precision(const struct table_row *row, char cell[CELL_BYTES])
{
    report_safe(cell, CELL_BYTES, row->key.precision);
}

static void put_layout(const struct table_row *row, char cell[CELL_BYTES])
{
    report_safe(cell, CELL_BYTES, row->key.layout);
}

static void put_device(const struct table_row *row, char cell[CELL_BYTES])
{
    report_safe(cell, CELL_BYTES, row->key.device);
}

static void put_verdict(const struct table_row *row, char cell[CELL_BYTES])
{
    report_safe(cell, CELL_BYTES, row->key.verdict);
}

static void put_runs(const struct table_row *row, char cell[CELL_BYTES])
{
    snprintf(cell, CELL_BYTES, "%" PRId64, row->runs);
}

static void put_seconds(const struct table_row *row, char cell[CELL_BYTES])
{
    report_seconds(cell, CELL_BYTES, row->step_seconds);
}

static void put_spread(const struct table_row *row, char cell[CELL_BYTES])
{
    put_percent(row->spread, cell);
}

static void put_tokens(const struct table_row *row, char cell[CELL_BYTES])
{
    snprintf(cell, CELL_BYTES, "%.0f", row->tokens_per_second);
}

static void put_mfu(const struct table_row *row, char cell[CELL_BYTES])
{
    put_percent(row->mfu, cell);
}

static void put_efficiency(const struct table_row *row, char cell[CELL_BYTES])
{
    put_percent(row->efficiency, cell);
}

static void put_published(const struct table_row *row, char cell[CELL_BYTES])
{
    put_ratio(row->published_ratio, cell);
}

static void put_expected(const struct table_row *row, char cell[CELL_BYTES])
{
    put_ratio(row->expected_ratio, cell);
}

// title: column heading; key: column name in CSV.
static const struct column {
    const char *title, *key;
    bool        is_number;
    write_cell *put;
} columns[] = {
    {"config", "config", false, put_config},
    {"ranks", "ranks", true, put_ranks},
    {"type", "precision", false, put_precision},
    {"layout", "layout", false, put_layout},
    {"device", "device", false, put_device},
    {"verdict", "verdict", false, put_verdict},
    {"runs", "runs", true, put_runs},
    {"s/step", "step_s", true, put_seconds},
    {"spread %", "spread_percent", true, put_spread},
    {"tokens/s", "tokens_per_s", true, put_tokens},
    {"MFU %", "mfu_percent", true, put_mfu},
    {"scaling %", "scaling_percent", true, put_efficiency},
    {"to published", "published_ratio", true, put_published},
    {"to expected", "expected_ratio", true, put_expected},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

void table_write_text(const struct table *table, FILE *file)
{
    char cell[CELL_BYTES];
    int  widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = (int)strlen(columns[c].title);
        for (int64_t i = 0; i < table->row_count; i++) {
            columns[c].put(&table->rows[i], cell);
            widths[c] = (int)strlen(cell) > widths[c] ? (int)strlen(cell) : widths[c];
        }
    }
    for (int64_t i = -1; i < table->row_count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            text_copy(cell, sizeof(cell), columns[c].title);
            if (i >= 0) {
                columns[c].put(&table->rows[i], cell);
            }
            bool is_last = c == COLUMNS - 1;
            fprintf(file, columns[c].is_number ? "%*s%s" : "%-*s%s", widths[c], cell, is_last ? "\n" : "  ");
        }
    }
}

// A vertical bar would end the cell, so it is escaped.
static void write_markdown_cell(const char *cell, FILE *file)
{
    fputs(" ", file);
    for (; *cell != '\0'; cell++) {
        fprintf(file, *cell == '|' ? "\\%c" : "%c", *cell);
    }
    fputs(" |", file);
}

void table_write_markdown(const struct table *table, FILE *file)
{
    char cell[CELL_BYTES];
    for (int64_t i = -2; i < table->row_count; i++) {
        fputs("|", file);
        for (int c = 0; c < COLUMNS; c++) {
            text_copy(cell, sizeof(cell), i == -2 ? columns[c].title : columns[c].is_number ? "---:" : "---");
            if (i >= 0) {
                columns[c].put(&table->rows[i], cell);
            }
            write_markdown_cell(cell, file);
        }
        fputs("\n", file);
    }
}

// An unknown value is an empty cell.
void table_write_csv(const struct table *table, FILE *file)
{
    char cell[CELL_BYTES];
    for (int64_t i = -1; i < table->row_count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            text_copy(cell, sizeof(cell), columns[c].key);
            if (i >= 0) {
                columns[c].put(&table->rows[i], cell);
            }
            if (columns[c].is_number) {
                fputs(strcmp(cell, "-") == 0 ? "" : cell, file);
            } else {
                csv_write_text(cell, file);
            }
            fputs(c == COLUMNS - 1 ? "\n" : ",", file);
        }
    }
}
