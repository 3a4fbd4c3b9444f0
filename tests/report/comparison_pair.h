// SPDX-License-Identifier: MIT
// Two equal synthetic results, and their comparison as text: TestSuite(name, .init = open_pair, .fini = close_pair).
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "gswbench/status.h"
#include "result_fixture.h"

static struct result     first, second;
static struct comparison comparison;
static char             *text;    // the comparison as text

static inline void close_pair(void)
{
    comparison_free(&comparison);
    result_free(&first);
    result_free(&second);
    free(text);
    text = NULL;
}

static inline void open_pair(void)
{
    close_pair();
    fixture_open(&first);
    fixture_open(&second);
}

static inline void scale_steps(struct result *result, double share)
{
    for (int64_t i = 0; i < result->step_count; i++) {
        result->steps[i].seconds *= share;
    }
    result_derive(result);
}

static inline void compare(void)
{
    static size_t bytes;
    comparison_init(&comparison, &first, &second, 0.01);
    FILE *file = open_memstream(&text, &bytes);
    comparison_write_text(&comparison, 1, file);
    fclose(file);
}

static inline void expect_line(const char *line)
{
    cr_expect(strstr(text, line) != NULL, "%s is missing in:\n%s", line, text);
}

static inline void expect_no_line(const char *line)
{
    cr_expect(strstr(text, line) == NULL, "%s is in:\n%s", line, text);
}

// Expects that the results may be compared (message NULL), or the message that says why they may not.
static inline void expect_obstacles(const char *message)
{
    status checked = comparison_check(&comparison);
    cr_expect_eq(checked.exit_code, message != NULL ? EXIT_COMPARE : EXIT_VALID, "%s", checked.text);
    cr_expect(message == NULL || strcmp(checked.text, message) == 0, "%s", checked.text);
}

// Adds a setting to both results, with one value for each.
static inline void set_both(const char *name, const char *earlier, const char *later)
{
    result_add_entry(&first.config, &first.config_count, name, earlier);
    result_add_entry(&second.config, &second.config_count, name, later);
}
