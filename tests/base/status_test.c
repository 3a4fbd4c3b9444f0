// SPDX-License-Identifier: MIT
// Tests that error messages quote text from users without control characters.
#include "gswbench/status.h"

#include <criterion/criterion.h>

Test(status, quotes_nothing_that_a_terminal_would_obey)
{
    status result = fail_as(EXIT_USAGE, "unknown command %s: try another", "\x1b[31mx\xe2\x80\xaey\ngswbench: forged");

    cr_expect_eq(result.exit_code, EXIT_USAGE);
    cr_expect_str_eq(result.text, "unknown command ?[31mx?y?gswbench: forged: try another");
}

Test(status, joins_errors_by_lines)
{
    status errors = OK;
    status_add(&errors, fail_as(EXIT_LAUNCH, "one"));
    status_add(&errors, fail("two"));

    cr_expect_eq(errors.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(errors.text, "one\ntwo");
}
