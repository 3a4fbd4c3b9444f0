// SPDX-License-Identifier: MIT
// Runs the tests of a program one after the other.
#include "criterion/criterion.h"

struct tsan_test *tsan_tests;

int main(void)
{
    for (const struct tsan_test *test = tsan_tests; test != NULL; test = test->next) {
        fprintf(stderr, "%s\n", test->name);
        test->run();
    }
    return EXIT_SUCCESS;
}
