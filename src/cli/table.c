// SPDX-License-Identifier: MIT
// gswbench table: prints many results as one table.
#include "gswbench/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "gswbench/report.h"
#include "internal.h"

enum { RESULTS_MAX = 4096 };    // limit of results in one table

const struct flag table_flags[] = {
    OPERANDS(words, "DIR...", "folders of runs, or folders that contain them, such as results"),
    TEXT_FLAG(format, "--format", "text|markdown|csv|json", "output format; default: text"),
    SWITCH_FLAG(force, "--force", "also list runs that are not VALID, one row per verdict"),
    END_FLAGS,
};

struct reading {
    struct table   table;
    struct result *result;
    int64_t        left_out;
    bool           force;
};

// Reports unreadable and incomparable results on stderr, and leaves them out.
static void add_result(struct reading *reading, const char *path)
{
    memset(reading->result, 0, sizeof(*reading->result));
    status read = report_read_result(reading->result, path);
    if (failed(&read)) {
        fprintf(stderr, "gswbench: left out: %s\n", read.text);
        reading->left_out++;
    } else if (!result_is_clean(reading->result) && !reading->force) {
        fputs("gswbench: left out: ", stderr);
        text_print(path, stderr);
        fprintf(stderr, ": %s (--force includes it)\n", result_verdict_names[reading->result->verdict]);
        reading->left_out++;
    } else {
        table_add(&reading->table, reading->result);
    }
    result_free(reading->result);
}

static status visit_result(void *state, const char *path)
{
    struct reading *reading = state;
    add_result(reading, path);
    return reading->table.run_count + reading->left_out <= RESULTS_MAX
               ? OK
               : fail_as(EXIT_USAGE, "more than %d results: name folders that have fewer", RESULTS_MAX);
}

static status read_results(struct reading *reading, const struct text_list *paths)
{
    for (int i = 0; i < paths->count; i++) {
        TRY(report_visit_results(paths->items[i], visit_result, reading));
    }
    return reading->table.run_count > 0 ? OK : fail_as(EXIT_COMPARE, "no result that can be compared");
}

status command_table(const struct arguments *chosen, struct text_buffer *errors)
{
    static const struct {
        const char *name;
        void (*write)(const struct table *table, FILE *file);
    } formats[]        = {{"text", table_write_text},
                          {"markdown", table_write_markdown},
                          {"csv", table_write_csv},
                          {"json", table_write_json}};
    const char *name   = chosen->format != NULL ? chosen->format : "text";
    size_t      format = 0, count = sizeof(formats) / sizeof(formats[0]);
    (void)errors;
    while (format < count && strcmp(formats[format].name, name) != 0) {
        format++;
    }
    if (format == count || chosen->words.count == 0) {
        return format == count ? fail_as(EXIT_USAGE, "--format %s: expected text, markdown, csv or json", name)
                               : fail_as(EXIT_USAGE, "table needs a folder of results: name one, e.g. results");
    }
    struct reading reading = {.result = memory_allocate(sizeof(*reading.result)), .force = chosen->force};
    status         result  = read_results(&reading, &chosen->words);
    if (!failed(&result)) {
        table_finish(&reading.table);
        formats[format].write(&reading.table, stdout);
    }
    table_free(&reading.table);
    free(reading.result);
    return result;
}
