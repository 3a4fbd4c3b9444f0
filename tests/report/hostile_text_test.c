// SPDX-License-Identifier: MIT
// Hostile texts in every externally supplied field, in every output.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "gswbench/report.h"
#include "gswbench/text.h"
#include "result_fixture.h"

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><b>",
    "' onmouseover='x",
    "&lt;b&gt;",
    "]]>",
    "a\nRESULT VALID  50 steps",
    "a\r\nstatus: valid",
    "\t",
    "\x1b[2J\x1b[31m",
    "\x1b]0;title\x07",
    "\x08\x08\x08",
    "\x7f",
    "\xc2\x9b"
    "31m",
    "\xe2\x80\xa8",
    "\xe2\x80\xae"
    "dilav",
    "\xff\xfe",
    "\xc3",
    "=cmd(\"x\")",
    "+1",
    "-1+1",
    "@sum(a1)",
    "\\\"",
    "%s%n%1000000d",
    "../../etc/passwd",
};
enum { HOSTILE = sizeof(hostile) / sizeof(hostile[0]) };

static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        found++;
    }
    return found;
}

static void put(struct result *result, const char *text)
{
    fixture_open(result);
    text_copy(result->config_name, sizeof(result->config_name), text);
    text_copy(result->config[0].value, sizeof(result->config[0].value), text);
    text_copy(result->environment[0].value, sizeof(result->environment[0].value), text);
    text_copy(result->ranks[0].host, sizeof(result->ranks[0].host), text);
    text_copy(result->device, sizeof(result->device), text);
    struct result_reason reason = {.verdict = VERDICT_VALID, .rank = -1, .step = -1, .id = "note"};
    text_copy(reason.message, sizeof(reason.message), text);
    result_add_reason(result, &reason);
    text_copy(result->expectation.profile, sizeof(result->expectation.profile), text);
    text_copy(result->op_times[0].kind, sizeof(result->op_times[0].kind), text);
    struct result_turn turn = {.stage = 0, .begin = 0, .end = 1};
    text_copy(turn.phase, sizeof(turn.phase), text);
    result_add_turns(result, &turn, 1);
}

// Writes the comparison with a harmless first result.
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

// Checks that there are as many lines as with a harmless text, and that no terminal escape is printed.
static void expect_lines(const char *text, const char *harmless, const char *what)
{
    cr_expect_eq(count(text, "\n"), count(harmless, "\n"), "%s", what);
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        cr_expect((byte >= ' ' && byte != 0x7f) || byte == '\n', "%s: byte %02x", what, byte);
    }
    cr_expect_null(strstr(text, "\xc2\x9b"), "%s", what);
    cr_expect_null(strstr(text, "\xe2\x80\xae"), "%s", what);
}

// Checks that no quoted field starts a formula; an apostrophe must precede it.
static void expect_cells(const char *text, const char *what)
{
    static const char *const formulas[] = {",\"=", ",\"+", ",\"-", ",\"@"};
    for (int i = 0; i < 4; i++) {
        cr_expect_null(strstr(text, formulas[i]), "%s: %s", what, text);
    }
}

Test(hostile_text, is_text_in_lines_and_cells)
{
    struct result harmless;
    put(&harmless, "abc");
    report_writer *const writers[] = {report_write_header, report_write_result, report_write_csv,
                                      report_write_csv_ranks};
    for (int i = 0; i < HOSTILE; i++) {
        struct result result;
        put(&result, hostile[i]);
        for (int j = 0; j < 4; j++) {
            char *text = fixture_render(writers[j], &result), *other = fixture_render(writers[j], &harmless);
            expect_lines(text, other, hostile[i]);
            expect_cells(text, hostile[i]);
            free(text);
            free(other);
        }
        result_free(&result);
    }
    result_free(&harmless);
}

static void expect_elements(report_writer *write)
{
    struct result harmless;
    put(&harmless, "abc");
    char *other = fixture_render(write, &harmless);
    for (int i = 0; i < HOSTILE; i++) {
        struct result result;
        put(&result, hostile[i]);

        char *text = fixture_render(write, &result);

        cr_expect_eq(count(text, "<"), count(other, "<"), "%s", hostile[i]);
        cr_expect_eq(count(text, "\""), count(other, "\""), "%s", hostile[i]);
        cr_expect_null(strstr(text, "\x1b"), "%s", hostile[i]);
        free(text);
        result_free(&result);
    }
    free(other);
    result_free(&harmless);
}

Test(hostile_text, makes_no_element_of_a_page)
{
    expect_elements(report_write_html);
    expect_elements(write_comparison);
    expect_elements(write_list);
}

Test(hostile_text, comes_back_from_json_as_it_is_shown)
{
    for (int i = 0; i < HOSTILE; i++) {
        struct result result;
        char          shown[256];
        put(&result, hostile[i]);
        text_printable(shown, sizeof(shown), hostile[i]);

        char   *text     = fixture_render(report_write_json, &result);
        json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        json_t *config   = json_object_get(document, "config");
        json_t *rank     = json_array_get(json_object_get(document, "ranks"), 0);

        cr_assert_not_null(document, "%s", hostile[i]);
        cr_expect_str_eq(json_string_value(json_object_get(config, "name")), shown);
        cr_expect_str_eq(json_string_value(json_object_get(rank, "host")), shown);
        json_decref(document);
        free(text);
        result_free(&result);
    }
}
