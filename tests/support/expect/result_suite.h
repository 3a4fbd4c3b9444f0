// SPDX-License-Identifier: MIT
// Makes a new result for each test of a suite: TestSuite(name, .init = open_result, .fini = close_result).
#pragma once

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "result_fixture.h"

static struct result result;

static inline void open_result(void)
{
    fixture_open(&result);
}

static inline void close_result(void)
{
    result_free(&result);
}

static inline void reopen_result(void)
{
    close_result();
    open_result();
}

// Expects that a report of the result contains a text, or does not contain it.
static inline void expect_in(report_writer *write, const char *expected)
{
    char *text = fixture_render(write, &result);
    cr_expect(strstr(text, expected) != NULL, "%s is missing in:\n%s", expected, text);
    free(text);
}

static inline void expect_not_in(report_writer *write, const char *unexpected)
{
    char *text = fixture_render(write, &result);
    cr_expect(strstr(text, unexpected) == NULL, "%s is in:\n%s", unexpected, text);
    free(text);
}

// Expects this verdict and exactly one reason with this id and message. id NULL: expects no reason.
static inline void expect_reason(enum verdict verdict, const char *id, const char *message)
{
    result_check(&result);
    cr_expect_eq(result.verdict, verdict, "%s", result_verdict_names[result.verdict]);
    cr_assert_eq(result.reason_count, id != NULL, "%d reasons, the first is %s", (int)result.reason_count,
                 result.reason_count > 0 ? result.reasons[0].message : "none");
    if (id != NULL) {
        cr_expect_str_eq(result.reasons[0].message, message);
        cr_expect_str_eq(result.reasons[0].id, id);
        cr_expect_eq(result.reasons[0].verdict, verdict);
    }
}
