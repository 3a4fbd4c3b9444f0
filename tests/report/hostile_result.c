// SPDX-License-Identifier: MIT
// Writes a result with a hostile text in every externally supplied field, in every format: hostile_result FOLDER TEXT
#include <stdio.h>

#include "gswbench/fatal.h"
#include "gswbench/comparison.h"
#include "gswbench/text.h"
#include "observation_fixture.h"
#include "result_fixture.h"

#define PUT(field) text_copy(field, sizeof(field), text)

static void put(struct result *result, const char *text)
{
    fixture_open(result);
    fixture_observe(result, 2);
    PUT(result->run_id);
    PUT(result->version);
    PUT(result->compiler);
    PUT(result->config_hash);
    PUT(result->precision);
    PUT(result->communicator);
    PUT(result->backend);
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
    for (int64_t i = 0; i < result->communication_time_count; i++) {
        PUT(result->communication_times[i].algorithm);
    }
    PUT(result->observations[0].name);
    PUT(result->observations[0].missing);
    result->observations[1].rank = 9;    // no such rank in the result
    struct result_reason reason  = {.verdict = VERDICT_VALID, .rank = -1, .step = -1, .id = "note"};
    PUT(reason.message);
    result_add_reason(result, &reason);
    struct result_action action = {.stage = 0, .begin = 0, .end = 1};
    PUT(action.phase);
    result_add_actions(result, &action, 1);
    PUT(result->expectation.profile);
    PUT(result->op_times[0].kind);
}

// The comparison with a harmless result.
static void write_comparison(const struct result *result, FILE *file)
{
    struct result     first;
    struct comparison comparison;
    fixture_open(&first);
    comparison_init(&comparison, &first, result, 0.01);
    comparison_write_html(&comparison, 1, file);
    comparison_free(&comparison);
    result_free(&first);
}

static void write_list(const struct result *result, FILE *file)
{
    const char                *text = result->config_name;
    const struct report_listed row  = {.name = text, .link = text, .result = result, .speedup = 1};
    report_write_list(&(struct report_list){.title      = text,
                                            .subtitle   = text,
                                            .heading    = "all",
                                            .remark     = text,
                                            .facts      = {{.value = "1", .name = "fact", .note = text}},
                                            .fact_count = 1,
                                            .rows       = &row,
                                            .count      = 1},
                      file);
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

static void write_file(const char *folder, const char *name, report_writer *write, const struct result *result)
{
    FILE *file = create(folder, name);
    write(result, file);
    fclose(file);
}

static void write_table(const char *folder, const struct result *result)
{
    static const struct {
        const char  *name;
        grid_writer *write;
    } formats[] = {
        {"table.text", grid_write_text}, {"table.markdown", grid_write_markdown}, {"table.csv", grid_write_csv}};
    struct table table = {.row_count = 0};
    table_add(&table, result);
    table_finish(&table);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        FILE *file = create(folder, formats[i].name);
        table_write(&table, formats[i].write, file);
        fclose(file);
    }
    FILE *file = create(folder, "table.json");
    table_write_json(&table, file);
    fclose(file);
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
        write_file(argv[1], format->name, format->write, &result);
    }
    write_file(argv[1], "header", report_write_header, &result);
    write_file(argv[1], "comparison", write_comparison, &result);
    write_file(argv[1], "list", write_list, &result);
    write_table(argv[1], &result);
    result_free(&result);
    return 0;
}
