// SPDX-License-Identifier: MIT
// A results table as text, Markdown, CSV and JSON; columns[] describes every column of the first three.
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "gswbench/table.h"
#include "gswbench/text.h"
#include "internal.h"

enum { CELL_BYTES = 128 };

enum cell { CELL_TEXT, CELL_INTEGER, CELL_SECONDS, CELL_RATE, CELL_PERCENT, CELL_RATIO };

// title: column heading; key: column name in CSV.
#define COLUMN(title, key, cell, field)                                                                                \
    {                                                                                                                  \
        title, key, cell, offsetof(struct table_row, field)                                                            \
    }
static const struct column {
    const char *title, *key;
    enum cell   cell;
    size_t      offset;
} columns[] = {
    COLUMN("config", "config", CELL_TEXT, key.config),
    COLUMN("ranks", "ranks", CELL_INTEGER, key.ranks),
    COLUMN("type", "precision", CELL_TEXT, key.precision),
    COLUMN("layout", "layout", CELL_TEXT, key.layout),
    COLUMN("device", "device", CELL_TEXT, key.device),
    COLUMN("verdict", "verdict", CELL_TEXT, key.verdict),
    COLUMN("runs", "runs", CELL_INTEGER, runs),
    COLUMN("s/step", "step_s", CELL_SECONDS, step_seconds),
    COLUMN("spread %", "spread_percent", CELL_PERCENT, spread),
    COLUMN("tokens/s", "tokens_per_s", CELL_RATE, tokens_per_second),
    COLUMN("MFU %", "mfu_percent", CELL_PERCENT, mfu),
    COLUMN("scaling %", "scaling_percent", CELL_PERCENT, efficiency),
    COLUMN("to published", "published_ratio", CELL_RATIO, published_ratio),
    COLUMN("to expected", "expected_ratio", CELL_RATIO, expected_ratio),
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void print_cell(const struct column *column, const struct table_row *row, char cell[CELL_BYTES])
{
    const void   *field = (const char *)row + column->offset;
    const double *real  = field;
    switch (column->cell) {
    case CELL_TEXT:
        text_printable(cell, CELL_BYTES, field);
        break;
    case CELL_INTEGER:
        snprintf(cell, CELL_BYTES, "%" PRId64, *(const int64_t *)field);
        break;
    case CELL_SECONDS:
        text_copy(cell, CELL_BYTES, report_seconds(*real));
        break;
    case CELL_RATE:
        snprintf(cell, CELL_BYTES, "%.0f", *real);
        break;
    case CELL_PERCENT:
        snprintf(cell, CELL_BYTES, isnan(*real) ? "-" : "%.1f", 100.0 * *real);
        break;
    case CELL_RATIO:
        snprintf(cell, CELL_BYTES, isnan(*real) ? "-" : "%.3f", *real);
    }
}

void table_write_text(const struct table *table, FILE *file)
{
    char cell[CELL_BYTES];
    int  widths[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = (int)strlen(columns[c].title);
        for (int64_t i = 0; i < table->row_count; i++) {
            print_cell(&columns[c], &table->rows[i], cell);
            widths[c] = (int)strlen(cell) > widths[c] ? (int)strlen(cell) : widths[c];
        }
    }
    for (int64_t i = -1; i < table->row_count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            text_copy(cell, sizeof(cell), columns[c].title);
            if (i >= 0) {
                print_cell(&columns[c], &table->rows[i], cell);
            }
            bool is_last = c == COLUMNS - 1;
            fprintf(file, columns[c].cell != CELL_TEXT ? "%*s%s" : "%-*s%s", widths[c], cell, is_last ? "\n" : "  ");
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
            text_copy(cell, sizeof(cell), i == -2 ? columns[c].title : columns[c].cell != CELL_TEXT ? "---:" : "---");
            if (i >= 0) {
                print_cell(&columns[c], &table->rows[i], cell);
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
                print_cell(&columns[c], &table->rows[i], cell);
            }
            if (columns[c].cell != CELL_TEXT) {
                fputs(strcmp(cell, "-") == 0 ? "" : cell, file);
            } else {
                csv_write_text(cell, file);
            }
            fputs(c == COLUMNS - 1 ? "\n" : ",", file);
        }
    }
}

// clang-format off
static const struct json_field rows[] = {
    ROW_TEXT(table_row, "config", key.config),
    ROW_INTEGER(table_row, "ranks", key.ranks),
    ROW_TEXT(table_row, "precision", key.precision),
    ROW_TEXT(table_row, "layout", key.layout),
    ROW_TEXT(table_row, "device", key.device),
    ROW_TEXT(table_row, "verdict", key.verdict),
    ROW_INTEGER(table_row, "layers", key.layers),
    ROW_INTEGER(table_row, "sequence", key.sequence),
    ROW_INTEGER(table_row, "global_batch", key.global_batch),
    ROW_INTEGER(table_row, "runs", runs),
    ROW_REAL(table_row, "step_s", step_seconds),
    ROW_REAL(table_row, "spread", spread),
    ROW_REAL(table_row, "tokens_per_s", tokens_per_second),
    ROW_REAL(table_row, "mfu", mfu),
    ROW_REAL(table_row, "efficiency", efficiency),
    ROW_REAL(table_row, "published_ratio", published_ratio),
    ROW_REAL(table_row, "expected_ratio", expected_ratio),
    JSON_END
};
const struct json_field table_fields[] = {
    JSON_SCHEMA("gswbench.table/3"),
    JSON_LIST(table, "rows", rows, row_count, sizeof(struct table_row), rows),
    JSON_END
};
// clang-format on

void table_write_json(const struct table *table, FILE *file)
{
    json_t *document = json_from_struct(table_fields, table);
    json_print(document, file);
    json_decref(document);
}
