// SPDX-License-Identifier: MIT
// Tests that a shared library is opened by its file name or absolute path only. A relative path is refused, because it
// could name a file in the current folder.
#include "gswbench/library.h"

#include <criterion/criterion.h>
#include <string.h>

Test(library, takes_names_for_the_loader_and_whole_paths_only)
{
    double (*cosine)(double)             = NULL;
    const struct library_symbol symbol[] = {{"cos", &cosine, false}};

    status by_name  = library_open("libm.so.6", symbol, 1);
    status missing  = library_open("/no/such/libm.so.6", symbol, 1);
    status relative = library_open("./libm.so.6", symbol, 1);
    status below    = library_open("folder/libm.so.6", symbol, 1);

    cr_expect(!failed(&by_name) && cosine(0) == 1);
    cr_expect_eq(missing.exit_code, EXIT_LAUNCH);
    cr_expect_not_null(strstr(missing.text, "/no/such/libm.so.6 cannot be loaded"), "%s", missing.text);
    cr_expect_not_null(strstr(relative.text, "./libm.so.6 is a relative path: "), "%s", relative.text);
    cr_expect_not_null(strstr(below.text, "folder/libm.so.6 is a relative path: "), "%s", below.text);
}
