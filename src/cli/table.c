// SPDX-License-Identifier: MIT
// gswbench table: prints many results as one table, or as a history that compares each run with the one before.
#include "gswbench/comparison.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "internal.h"

enum { RESULTS_MAX = 4096 };    // limit of results in one table

const struct flag table_flags[] = {
    OPERANDS(words, "DIR...", "folders of runs, or folders that contain them, such as results"),
    TEXT_FLAG(format, "--format", "text|markdown|csv|html|json", "output format; default: text"),
    SWITCH_FLAG(is_history, "--history",
                "one row per run in the order of time: change from the run before, and what "
                "changed"),
    SWITCH_FLAG(force, "--force", "also list and compare runs that are not VALID, one row per verdict"),
    END_FLAGS,
};

// The results that were read. They form a table, or a history.
struct reading {
    struct table   table;
    struct history history;
    struct result *result;
    int64_t        count, left_out;
    bool           force, is_history;
};

// Formats of the output. write_grid prints the cells of a table or of a history; NULL: the format prints no cells.
static const struct table_format {
    const char  *name;
    grid_writer *write_grid;
} formats[] = {{"text", grid_write_text},
               {"markdown", grid_write_markdown},
               {"csv", grid_write_csv},
               {"html", NULL},
               {"json", NULL}};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

// Adds a result. If it cannot be read or compared, leaves it out and prints the reason on stderr. Fails if there are
// too many results.
static status visit_result(void *state, const char *path)
{
    struct reading *reading = state;
    status          read    = report_read_result(reading->result, path);
    if (failed(&read)) {
        fprintf(stderr, "gswbench: left out: %s\n", read.text);
        reading->left_out++;
    } else if (!result_is_clean(reading->result) && !reading->force) {
        fputs("gswbench: left out: ", stderr);
        text_print(path, stderr);
        fprintf(stderr, ": %s (--force includes it)\n", result_verdict_names[reading->result->verdict]);
        reading->left_out++;
    } else if (reading->is_history) {
        history_add(&reading->history, reading->result);
        reading->count++;
    } else {
        table_add(&reading->table, reading->result);
        reading->count++;
    }
    result_free(reading->result);
    return reading->count + reading->left_out <= RESULTS_MAX
               ? OK
               : fail_as(EXIT_USAGE, "more than %d results: name folders that have fewer", RESULTS_MAX);
}

static status read_results(struct reading *reading, const struct text_list *paths)
{
    for (int i = 0; i < paths->count; i++) {
        TRY(report_visit_results(paths->items[i], visit_result, reading));
    }
    return reading->count > 0 ? OK : fail_as(EXIT_COMPARE, "no result that can be compared");
}

static void print_table(struct table *table, const struct table_format *format)
{
    table_finish(table);
    if (format->write_grid != NULL) {
        table_write(table, format->write_grid, stdout);
    } else if (strcmp(format->name, "html") == 0) {
        table_write_html(table, stdout);
    } else {
        json_write(table_fields, table, stdout);
    }
}

static void print_history(struct history *history, const struct table_format *format)
{
    history_finish(history);
    if (format->write_grid != NULL) {
        history_write(history, format->write_grid, stdout);
    } else if (strcmp(format->name, "html") == 0) {
        history_write_html(history, stdout);
    } else {
        json_write(history_fields, history, stdout);
    }
}

status command_table(const struct arguments *chosen)
{
    const char *name   = chosen->format != NULL ? chosen->format : "text";
    int         format = 0;
    while (format < FORMATS && strcmp(formats[format].name, name) != 0) {
        format++;
    }
    if (format == FORMATS || chosen->words.count == 0) {
        return format == FORMATS ? fail_as(EXIT_USAGE, "--format %s: expected text, markdown, csv, html or json", name)
                                 : fail_as(EXIT_USAGE, "table needs a folder of results: name one, e.g. results");
    }
    struct reading reading = {.result     = memory_allocate(sizeof(*reading.result)),
                              .force      = chosen->force,
                              .is_history = chosen->is_history,
                              .history    = {.force = chosen->force}};
    status         result  = read_results(&reading, &chosen->words);
    if (!failed(&result) && reading.is_history) {
        print_history(&reading.history, &formats[format]);
    } else if (!failed(&result)) {
        print_table(&reading.table, &formats[format]);
    }
    table_free(&reading.table);
    history_free(&reading.history);
    free(reading.result);
    return result;
}
