// SPDX-License-Identifier: MIT
// Checks calls that return a status. REQUIRE and EXPECT_SUCCESS expect success and show the text of an error; REQUIRE
// also ends the test.
#pragma once

#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/status.h"

#define REQUIRE(call)        SUCCESS(assert, call)
#define EXPECT_SUCCESS(call) SUCCESS(expect, call)
#define SUCCESS(check, call)                                                                                           \
    do {                                                                                                               \
        status result_ = (call);                                                                                       \
        cr_##check(!failed(&result_), "%s", result_.text);                                                             \
    } while (0)

// Expects an error with this exit code and text.
#define EXPECT_ERROR(call, code, expected)                                                                             \
    do {                                                                                                               \
        status result_ = (call);                                                                                       \
        cr_expect_eq(result_.exit_code, code, "%d: %s", result_.exit_code, result_.text);                              \
        cr_expect_str_eq(result_.text, expected, "%s", result_.text);                                                  \
    } while (0)

// Expects an error with this exit code, whose text contains a part.
#define EXPECT_ERROR_WITH(call, code, part)                                                                            \
    do {                                                                                                               \
        status result_ = (call);                                                                                       \
        cr_expect_eq(result_.exit_code, code, "%d: %s", result_.exit_code, result_.text);                              \
        cr_expect_not_null(strstr(result_.text, part), "%s", result_.text);                                            \
    } while (0)
