// SPDX-License-Identifier: MIT
// Two synthetic results, and their comparison as text. The second has the step times of the first times a factor.
#ifndef GSWBENCH_COMPARISON_PAIR_H
#define GSWBENCH_COMPARISON_PAIR_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "result_fixture.h"

static struct result     first, second;
static struct comparison comparison;

static inline void open_pair(double share)
{
    fixture_open(&first);
    fixture_open(&second);
    for (int64_t i = 0; i < second.step_count; i++) {
        second.steps[i].seconds *= share;
    }
    result_derive(&second);
}

static inline void close_pair(void)
{
    comparison_free(&comparison);
    result_free(&first);
    result_free(&second);
}

static inline char *text_of(void)
{
    static char  *text;    // static, or gcc 12 assumes that it points to the stack
    static size_t bytes;
    FILE         *file = open_memstream(&text, &bytes);
    comparison_write_text(&comparison, 1, file);
    fclose(file);
    return text;
}

static inline void expect_line(const char *text, const char *line)
{
    cr_expect_not_null(strstr(text, line), "%s is missing in:\n%s", line, text);
}

#endif
