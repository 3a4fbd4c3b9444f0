// SPDX-License-Identifier: MIT
// Tests the thread pool of the host backend. Also compares the instruction sets that the program finds by cpuid with
// /proc/cpuinfo.
#define _GNU_SOURCE    // declares usleep
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/host/pool.h"
#include "backend/host/processor.h"
#include "gswbench/backend.h"
#include "line.h"
#include "success.h"

enum { COUNT = 1000 };

struct marks {
    atomic_int visits[COUNT], threads_seen[8];
    int64_t    first[8];
};

static void mark(void *context, int64_t first, int64_t last, int thread)
{
    struct marks *marks = context;
    atomic_fetch_add(&marks->threads_seen[thread], 1);
    marks->first[thread] = first;
    for (int64_t i = first; i < last; i++) {
        atomic_fetch_add(&marks->visits[i], 1);
    }
}

Test(pool, visits_every_index_once)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, COUNT};
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_open(threads);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            struct marks marks = {0};
            pool_run(pool, mark, &marks, counts[i]);
            for (int64_t j = 0; j < COUNT; j++) {
                cr_assert_eq(marks.visits[j], j < counts[i] ? 1 : 0);
            }
        }
        pool_close(pool);
    }
}

Test(pool, splits_evenly_and_in_order)
{
    struct pool *pool  = pool_open(3);
    struct marks marks = {0};

    pool_run(pool, mark, &marks, 10);

    cr_assert_eq(pool_threads(pool), 3);
    cr_assert_eq(marks.first[0], 0);
    cr_assert_eq(marks.first[1], 3);
    cr_assert_eq(marks.first[2], 6);
    cr_assert(marks.threads_seen[0] == 1 && marks.threads_seen[1] == 1 && marks.threads_seen[2] == 1);
    pool_close(pool);
}

Test(pool, takes_every_core_when_not_told)
{
    struct pool *pool = pool_open(0);

    cr_assert_geq(pool_threads(pool), 1);
    cr_assert_leq(pool_threads(pool), sysconf(_SC_NPROCESSORS_CONF));
    pool_close(pool);
}

// Runs thousands of loops. Some follow a pause in which threads go to sleep, others find the threads still awake.
Test(pool, survives_many_loops_and_pauses)
{
    struct pool *pool  = pool_open(4);
    struct marks marks = {0};
    for (int i = 0; i < 3000; i++) {
        pool_run(pool, mark, &marks, 8);
        if (i % 500 == 0) {
            usleep(2000);
        }
    }

    for (int i = 0; i < 8; i++) {
        cr_assert_eq(marks.visits[i], 3000);
    }
    pool_close(pool);
}

static void *run_own_pool(void *argument)
{
    (void)argument;
    struct pool *pool  = pool_open(2);
    struct marks marks = {0};
    for (int i = 0; i < 300; i++) {
        pool_run(pool, mark, &marks, 4);
    }
    pool_close(pool);
    return (void *)(uintptr_t)marks.visits[3];
}

Test(pool, works_beside_other_pools)
{
    pthread_t ranks[4];
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&ranks[i], NULL, run_own_pool, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *visits;
        pthread_join(ranks[i], &visits);
        cr_assert_eq((uintptr_t)visits, 300);
    }
}

// Returns the name that /proc/cpuinfo uses for an instruction set.
static const char *system_name(const char *name)
{
    static const char *const names[][2] = {
        {"sse3", "pni"}, {"sse4.1", "sse4_1"}, {"sse4.2", "sse4_2"}, {"lzcnt", "abm"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i][0], name) == 0) {
            return names[i][1];
        }
    }
    return name;
}

Test(processor, has_what_the_system_says)
{
    char  *line = NULL;
    size_t room = 0;
    FILE  *file = fopen("/proc/cpuinfo", "r");
    cr_assert_not_null(file);
    while (getline(&line, &room, file) > 0 && strncmp(line, "flags", 5) != 0) {
    }
    fclose(file);
    if (strncmp(line, "flags", 5) != 0) {
        cr_skip_test("not an x86 processor");
    }
    line[strcspn(line, "\n")] = ' ';
    for (int i = 0; i < PROCESSOR_FEATURE_COUNT; i++) {
        const char *name = processor_feature_name((enum processor_feature)i);
        cr_expect_eq(processor_features() >> i & 1, strstr(line, line_of(" %s ", system_name(name))) != NULL, "%s",
                     name);
    }
    free(line);
}

// The test runs on the host that compiled it, so the CPU must have every instruction set of the build.
Test(processor, has_what_this_program_was_compiled_for)
{
    EXPECT_SUCCESS(backend_check_processor());
}
