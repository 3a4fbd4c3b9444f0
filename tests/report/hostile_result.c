// SPDX-License-Identifier: MIT
// Writes a result with a hostile text in every externally supplied field, in every format: hostile_result FOLDER TEXT
#include <stdio.h>

#include "gswbench/fatal.h"
#include "gswbench/json.h"
#include "gswbench/table.h"
#include "gswbench/text.h"
#include "result_fixture.h"

#define PUT(field) text_copy(field, sizeof(field), text)

static void put(struct result *result, const char *text)
{
    fixture_open(result);
    PUT(result->config_name);
    PUT(result->config_path);
    PUT(result->published_source);
    PUT(result->device);
    PUT(result->peak_source);
    PUT(result->config[0].value);
    PUT(result->environment[0].value);
    PUT(result->attention.provider);
    for (int64_t i = 0; i < result->rank_count; i++) {
        PUT(result->ranks[i].host);
    }
    for (int64_t i = 0; i < result->transfer_time_count; i++) {
        PUT(result->transfer_times[i].algorithm);
    }
    struct result_reason reason = {.verdict = VERDICT_VALID, .rank = -1, .step = -1, .id = "note"};
    PUT(reason.message);
    result_add_reason(result, &reason);
}

static FILE *create(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        FATAL(EXIT_OUTPUT, "%s cannot be written", path);
    }
    return file;
}

static void write_table(const char *folder, const struct result *result)
{
    static const struct {
        const char *name;
        void (*write)(const struct table *table, FILE *file);
    } formats[]        = {{"table.text", table_write_text},
                          {"table.markdown", table_write_markdown},
                          {"table.csv", table_write_csv},
                          {"table.json", table_write_json}};
    struct table table = {.row_count = 0};
    table_add(&table, result);
    table_finish(&table);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        FILE *file = create(folder, formats[i].name);
        formats[i].write(&table, file);
        fclose(file);
    }
    table_free(&table);
}

int main(int argc, char **argv)
{
    struct result result;
    if (argc != 3) {
        FATAL(EXIT_USAGE, "usage: hostile_result FOLDER TEXT");
    }
    put(&result, argv[2]);
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        FILE *file = create(argv[1], format->name);
        format->write(&result, file);
        fclose(file);
    }
    FILE *file = create(argv[1], "header");
    report_write_header(&result, file);
    fclose(file);
    write_table(argv[1], &result);
    result_free(&result);
    return 0;
}
