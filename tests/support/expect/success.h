// SPDX-License-Identifier: MIT
// Checks calls that return a status and must succeed. If one fails, the text of the error is shown; REQUIRE also ends
// the test.
#pragma once

#include <criterion/criterion.h>

#include "gswbench/status.h"

#define REQUIRE(call)        SUCCESS(assert, call)
#define EXPECT_SUCCESS(call) SUCCESS(expect, call)
#define SUCCESS(check, call)                                                                                           \
    do {                                                                                                               \
        status result_ = (call);                                                                                       \
        cr_##check(!failed(&result_), "%s", result_.text);                                                             \
    } while (0)
