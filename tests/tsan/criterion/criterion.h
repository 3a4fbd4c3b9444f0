// SPDX-License-Identifier: MIT
// The part of Criterion that threaded tests use, in one process. ThreadSanitizer does not support the shared memory
// between Criterion's processes.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsan_test {
    const char *suite, *name;
    void (*run)(void);
    struct tsan_test *next;
};
extern struct tsan_test *tsan_tests;

// Functions that run before and after each test of a suite.
struct tsan_suite {
    const char *name;
    void (*init)(void), (*fini)(void);
    double             timeout;    // not used
    struct tsan_suite *next;
};
extern struct tsan_suite *tsan_suites;

// clang-format off
#define Test(suite, test, ...)                                                                      \
    static void suite##_##test(void);                                                               \
    static struct tsan_test suite##_##test##_row = {#suite, #test, suite##_##test, NULL};           \
    __attribute__((constructor)) static void suite##_##test##_add(void)                             \
    {                                                                                               \
        suite##_##test##_row.next = tsan_tests;                                                     \
        tsan_tests                = &suite##_##test##_row;                                          \
    }                                                                                               \
    static void suite##_##test(void)

#define TestSuite(suite, ...)                                                                       \
    static struct tsan_suite suite##_suite = {.name = #suite, __VA_ARGS__};                         \
    __attribute__((constructor)) static void suite##_suite_add(void)                                \
    {                                                                                               \
        suite##_suite.next = tsan_suites;                                                           \
        tsan_suites        = &suite##_suite;                                                        \
    }                                                                                               \
    struct tsan_suite

#define cr_assert(condition, ...)                                                                   \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);               \
            fprintf(stderr, "" __VA_ARGS__);                                                        \
            abort();                                                                                \
        }                                                                                           \
    } while (0)
#define cr_skip_test(why)                                                                           \
    do {                                                                                            \
        printf("skipped: %s\n", why);                                                               \
        return;                                                                                     \
    } while (0)
#define cr_assert_not(condition, ...)    cr_assert(!(condition), __VA_ARGS__)
#define cr_assert_null(pointer, ...)     cr_assert((pointer) == NULL, __VA_ARGS__)
#define cr_assert_not_null(pointer, ...) cr_assert((pointer) != NULL, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)          cr_assert((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)         cr_assert((a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)          cr_assert((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)         cr_assert((a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)          cr_assert((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)         cr_assert((a) >= (b), __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)      cr_assert(strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_str_empty(text, ...)   cr_assert((text)[0] == '\0', __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) cr_assert(memcmp(a, b, size) == 0, __VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...) cr_assert((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon), __VA_ARGS__)
#define cr_expect          cr_assert
#define cr_expect_not      cr_assert_not
#define cr_expect_null     cr_assert_null
#define cr_expect_not_null cr_assert_not_null
#define cr_expect_eq       cr_assert_eq
#define cr_expect_neq      cr_assert_neq
#define cr_expect_lt       cr_assert_lt
#define cr_expect_leq      cr_assert_leq
#define cr_expect_gt       cr_assert_gt
#define cr_expect_geq      cr_assert_geq
#define cr_expect_str_eq   cr_assert_str_eq
#define cr_expect_str_empty cr_assert_str_empty
#define cr_expect_arr_eq   cr_assert_arr_eq
#define cr_expect_float_eq cr_assert_float_eq
// clang-format on
