// SPDX-License-Identifier: MIT
// Tests the table of many results.
#include "gswbench/comparison.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"
#include "result_suite.h"

static struct table table;

static void close_table(void)
{
    table_free(&table);
    close_result();
}

TestSuite(table, .init = open_result, .fini = close_table);

// Adds a run on this number of ranks with this median step time. Its step always has 8192 x 512 tokens.
static void add(int64_t ranks, double seconds)
{
    reopen_result();
    result.mesh.world               = ranks;
    result.figures.step.median      = seconds;
    result.figures.tokens_per_step  = 1e6;
    result.expectation.step_seconds = 5.0;
    result.expectation.profile[0]   = ranks == 64 ? 'h' : '\0';
    table_add(&table, &result);
}

static char *render(grid_writer *write)
{
    struct text_stream stream;
    text_stream_open(&stream);
    table_write(&table, write, stream.file);
    text_stream_close(&stream);
    return stream.data;
}

static void expect_line(grid_writer *write, const char *line)
{
    char *text = render(write);
    cr_expect_not_null(strstr(text, line), "no '%s' in\n%s", line, text);
    free(text);
}

Test(table, makes_one_row_of_repeats_with_their_spread)
{
    add(64, 10.0);
    add(64, 10.4);
    add(64, 9.8);
    add(64, 10.2);
    table_finish(&table);
    cr_assert_eq(table.row_count, 1);
    cr_expect_eq(table.rows[0].runs, 4);
    cr_expect_float_eq(table.rows[0].step_seconds, 10.1, 1e-12);
    cr_expect_float_eq(table.rows[0].spread, 0.6 / 10.1, 1e-12);
    cr_expect_float_eq(table.rows[0].tokens_per_second, 1e6 / 10.1, 1e-6);
    cr_expect_float_eq(table.rows[0].expected_ratio, 2.02, 1e-12);
    cr_expect_float_eq(table.rows[0].published_ratio, 10.1 / 6.999, 1e-9);
}

Test(table, sets_a_job_against_its_row_of_fewest_ranks)
{
    add(256, 3.0);
    add(64, 10.0);
    add(128, 5.0);
    table_finish(&table);
    cr_assert_eq(table.row_count, 3);
    cr_expect_eq(table.rows[0].key.ranks, 64);
    cr_expect(isnan(table.rows[0].efficiency));
    cr_expect_float_eq(table.rows[1].efficiency, 1.0, 1e-12);
    cr_expect_float_eq(table.rows[2].efficiency, 10.0 / 12.0, 1e-12);
    expect_line(grid_write_csv, ",256,");
    expect_line(grid_write_csv, ",83.3,");
}

Test(table, keeps_machines_precisions_and_options_apart)
{
    add(64, 10.0);
    reopen_result();
    text_copy(result.precision, sizeof(result.precision), "fp8");
    table_add(&table, &result);
    text_copy(result.precision, sizeof(result.precision), "bf16");
    text_copy(result.device, sizeof(result.device), "another GPU, 3 multiprocessors");
    table_add(&table, &result);
    text_copy(result.config_hash, sizeof(result.config_hash), "other options");
    table_add(&table, &result);
    table_finish(&table);
    cr_expect_eq(table.row_count, 4);
    expect_line(grid_write_text, "  another GPU ");
}

// Configurations may have names of 127 bytes. They are different jobs, even if they differ only in the last byte.
Test(table, keeps_configurations_with_long_names_apart)
{
    char name[128];
    memset(name, 'n', sizeof(name));
    name[127] = '\0';
    for (int i = 0; i < 2; i++) {
        name[126] = i == 0 ? 'a' : 'b';
        text_copy(result.config_name, sizeof(result.config_name), name);
        result.mesh.world = 64 << i;
        table_add(&table, &result);
    }
    table_finish(&table);
    cr_expect(isnan(table.rows[1].efficiency));
    expect_line(grid_write_csv, name);
}

Test(table, says_nothing_of_what_is_not_known)
{
    add(128, 10.0);
    table_finish(&table);
    expect_line(grid_write_markdown, " | valid | 1 | 10.000 | - | 100000 | ");
    expect_line(grid_write_markdown, " | - |\n");
    expect_line(grid_write_csv, ",1,10.000,,100000,");
}

static void write_json(const struct table *from, FILE *file)
{
    json_write(table_fields, from, file);
}

// Expects a text in the output of write, which writes the table as a page or as JSON.
static void expect_document(void (*write)(const struct table *table, FILE *file), const char *text)
{
    struct text_stream stream;
    text_stream_open(&stream);
    write(&table, stream.file);
    text_stream_close(&stream);
    cr_expect_not_null(strstr(stream.data, text), "no '%s' in\n%s", text, stream.data);
    free(stream.data);
}

// Adds a run with this number of layers and this verdict. With is_proxy, the run has fewer layers than its model.
static void add_layers(int64_t layers, bool is_proxy, enum verdict verdict, double seconds)
{
    reopen_result();
    result.layers                  = layers;
    result.is_proxy                = is_proxy;
    result.verdict                 = verdict;
    result.figures.step.median     = seconds;
    result.figures.tokens_per_step = 1e6;
    table_add(&table, &result);
}

Test(table, labels_proxies_and_does_not_call_them_or_degraded_runs_the_fastest)
{
    add_layers(2, true, VERDICT_VALID, 1.0);
    add_layers(80, false, VERDICT_DEGRADED, 5.0);
    add_layers(80, false, VERDICT_VALID, 10.0);
    table_finish(&table);
    cr_assert_eq(table.row_count, 3);
    expect_line(grid_write_csv, "\n\"llama2-70b, proxy of 2 layers\",");
    expect_line(grid_write_markdown, "| llama2-70b, proxy of 2 layers |");
    expect_document(write_json, "\"config\": \"llama2-70b\"");
    expect_document(table_write_html,
                    "Fastest per rank: llama2-70b at 64 ranks, 10.000 s per step, 1562.5 tokens/s per "
                    "rank, valid");
}

Test(table, says_that_its_fastest_row_is_a_degraded_proxy)
{
    add_layers(1, true, VERDICT_DEGRADED, 1.0);
    table_finish(&table);
    expect_document(table_write_html, "Fastest per rank: llama2-70b, proxy of 1 layer at 64 ranks, ");
    expect_document(table_write_html, " tokens/s per rank, degraded");
}

Test(table, keeps_bars_and_backslashes_inside_a_markdown_cell)
{
    text_copy(result.config_name, sizeof(result.config_name), "a|b\\|c");
    table_add(&table, &result);
    table_finish(&table);
    expect_line(grid_write_markdown, "\n| a\\|b\\\\\\|c | 64 |");
}

// A partial run may have no measured step, so its step time is unknown.
Test(table, prints_a_dash_for_a_run_without_measured_steps)
{
    add_layers(80, false, VERDICT_PARTIAL, NAN);
    table_finish(&table);
    expect_line(grid_write_markdown, " | partial | 1 | - | - | - | - | - | - | - |\n");
    expect_line(grid_write_csv, ",\"partial\",1,,,,,,,\n");
    expect_document(table_write_html, "<h2>No run has a measured step</h2>");
}

Test(table, prefers_a_run_with_measured_steps)
{
    add_layers(79, false, VERDICT_PARTIAL, NAN);
    add_layers(80, false, VERDICT_DEGRADED, 5.0);
    table_finish(&table);
    expect_document(table_write_html, "Fastest per rank: llama2-70b at 64 ranks, 5.000 s per step, ");
}
