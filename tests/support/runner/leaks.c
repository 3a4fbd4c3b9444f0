// SPDX-License-Identifier: MIT
// Keeps leaks of Criterion itself out of the test results. Criterion runs each test in its own process, in which
// LeakSanitizer looks for leaks of the test. The process that starts these runs no code of this project, so it is not
// checked.
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>

static bool is_runner;

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
    (void)tests;
    is_runner = true;
}

// LeakSanitizer calls this at the end of a process.
int __lsan_is_turned_off(void)
{
    return is_runner;
}
