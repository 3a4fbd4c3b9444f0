// SPDX-License-Identifier: MIT
// Tests that a shared library is opened by its file name or absolute path only. A relative path is refused, because it
// could name a file in the current folder.
#include "gswbench/library.h"

#include <criterion/criterion.h>

#include "success.h"

Test(library, takes_names_for_the_loader_and_whole_paths_only)
{
    double (*cosine)(double)             = NULL;
    const struct library_symbol symbol[] = {{"cos", &cosine, false}};

    EXPECT_SUCCESS(library_open("libm.so.6", symbol, 1));
    cr_expect_eq(cosine(0), 1);
    EXPECT_ERROR_WITH(library_open("/no/such/libm.so.6", symbol, 1), EXIT_LAUNCH,
                      "/no/such/libm.so.6 cannot be loaded");
    EXPECT_ERROR_WITH(library_open("./libm.so.6", symbol, 1), EXIT_LAUNCH, "./libm.so.6 is a relative path: ");
    EXPECT_ERROR_WITH(library_open("folder/libm.so.6", symbol, 1), EXIT_LAUNCH,
                      "folder/libm.so.6 is a relative path: ");
}
