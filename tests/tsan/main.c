// SPDX-License-Identifier: MIT
// Runs the tests of a program one after another in one process.
#include "criterion/criterion.h"

struct tsan_test  *tsan_tests;
struct tsan_suite *tsan_suites;

static const struct tsan_suite *find_suite(const char *name)
{
    static const struct tsan_suite none;
    for (const struct tsan_suite *suite = tsan_suites; suite != NULL; suite = suite->next) {
        if (strcmp(suite->name, name) == 0) {
            return suite;
        }
    }
    return &none;
}

int main(void)
{
    for (const struct tsan_test *test = tsan_tests; test != NULL; test = test->next) {
        const struct tsan_suite *suite = find_suite(test->suite);
        fprintf(stderr, "%s/%s\n", test->suite, test->name);
        if (suite->init != NULL) {
            suite->init();
        }
        test->run();
        if (suite->fini != NULL) {
            suite->fini();
        }
    }
    return EXIT_SUCCESS;
}
