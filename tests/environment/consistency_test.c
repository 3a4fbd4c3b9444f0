// SPDX-License-Identifier: MIT
// Tests the check that settings agree on all ranks. A mismatch must name the deviating rank, its host, the setting, and
// the value that most ranks have.
#include "environment/internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static const char *describe(const char *const *values, int ranks)
{
    static char       text[SETTING_TEXT_BYTES];
    struct rank_value ranks_values[8];
    for (int rank = 0; rank < ranks; rank++) {
        snprintf(ranks_values[rank].host, sizeof(ranks_values[rank].host), "h%d", rank / 2);
        snprintf(ranks_values[rank].value, sizeof(ranks_values[rank].value), "%s", values[rank]);
    }
    mismatch_describe(text, sizeof(text), "CUDA", ranks_values, ranks);
    return text;
}

Test(consistency, names_the_rank_that_deviates_from_most)
{
    cr_expect_str_eq(describe((const char *const[]){"13.0", "13.0", "12.8", "13.0"}, 4),
                     "rank 2 on h1 has CUDA 12.8, 3 of 4 ranks, such as 0 on h0, 13.0");
    cr_expect_str_eq(describe((const char *const[]){"12.8", "13.0", "13.0"}, 3),
                     "rank 0 on h0 has CUDA 12.8, 2 of 3 ranks, such as 1 on h0, 13.0");
    cr_expect_str_eq(describe((const char *const[]){"12.8", "13.0"}, 2),
                     "rank 1 on h0 has CUDA 13.0, 1 of 2 ranks, such as 0 on h0, 12.8");
    cr_expect_str_eq(describe((const char *const[]){"1", "2", "3", "3", "3", "1"}, 6),
                     "rank 0 on h0 has CUDA 1 (3 ranks deviate), 3 of 6 ranks, such as 2 on h1, 3");
}

struct row {
    const char         *name, *value;
    struct setting_kind kind;
};
enum { RANKS = 4, ROWS_MAX = 4 };

// Environment and result of one rank.
struct rank {
    struct rank_environment environment;
    status                  result;
};

// A job whose ranks have the settings rows[0], except for one rank that has rows[1]. A list of settings ends with one
// that has no name.
struct comparison {
    const struct row (*rows)[ROWS_MAX];
    int         deviating;
    struct rank ranks[RANKS];
};

static void compare(struct comm *comm, void *context)
{
    struct comparison  *comparison = context;
    int                 number     = comm->topology.rank;
    struct rank        *rank       = &comparison->ranks[number];
    struct setting_list list       = {.rows = NULL};
    for (const struct row *row = comparison->rows[number == comparison->deviating]; row->name != NULL; row++) {
        settings_add(&list, &row->kind, row->name, row->value);
    }
    snprintf(comm->topology.host, sizeof(comm->topology.host), "h%d", number / 2);
    rank->result = settings_compare(&list, comm, &rank->environment);
    settings_free(&list);
}

// Checks that every rank gets the same result, and returns it. The caller closes its environment.
static struct rank compare_with(const struct row rows[2][ROWS_MAX], int deviating)
{
    struct comparison comparison = {.rows = rows, .deviating = deviating};
    struct rank      *ranks      = comparison.ranks;
    ranks_run(RANKS, compare, &comparison);
    for (int i = 1; i < RANKS; i++) {
        cr_expect_str_eq(ranks[i].result.text, ranks[0].result.text);
        cr_expect_eq(ranks[i].environment.notes.count, ranks[0].environment.notes.count);
        cr_expect_eq(ranks[i].environment.deviation_count, ranks[0].environment.deviation_count);
        environment_close(&ranks[i].environment);
    }
    return ranks[0];
}

static const struct setting_kind noted    = {.rule = SETTING_NOTED};
static const struct setting_kind own      = {.rule = SETTING_OWN, .is_setting = true};
static const struct setting_kind required = {SETTING_REQUIRED, true, "give all the same"};

Test(consistency, notes_what_may_differ_and_records_who_deviates)
{
    const struct row rows[2][ROWS_MAX] = {{{"driver", "550", noted}, {"NCCL_IB_HCA", "mlx5_0", own}},
                                          {{"driver", "560", noted}, {"NCCL_IB_HCA", "mlx5_1", own}}};
    struct rank      told              = compare_with(rows, 3);

    cr_expect_str_empty(told.result.text);
    cr_assert_eq(told.environment.notes.count, 1);
    cr_expect_str_eq(told.environment.notes.list[0].id, "ranks-unlike");
    cr_expect_str_eq(told.environment.notes.list[0].text,
                     "rank 3 on h1 has driver 560, 3 of 4 ranks, such as 0 on h0, 550");
    cr_assert_eq(told.environment.deviation_count, 2);
    const struct result_deviation *second = &told.environment.deviations[1];
    cr_expect_str_eq(second->name, "NCCL_IB_HCA");
    cr_expect_str_eq(second->value, "mlx5_1");
    cr_expect_str_eq(second->ranks, "3");
    cr_expect_str_eq(second->host, "h1");
    cr_expect_eq(second->count, 1);
    environment_close(&told.environment);
}

Test(consistency, refuses_what_has_to_be_alike)
{
    const struct row rows[2][ROWS_MAX] = {{{"same", "1", required}, {"run.seed", "1", required}},
                                          {{"same", "1", required}, {"run.seed", "2", required}}};
    struct rank      told              = compare_with(rows, 1);
    cr_expect_eq(told.result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(told.result.text,
                     "rank 1 on h0 has run.seed = 2, 3 of 4 ranks, such as 0 on h0, 1: give all the same");
    environment_close(&told.environment);
}

Test(consistency, knows_rows_that_only_some_ranks_have)
{
    const struct row some[2][ROWS_MAX] = {{{"driver", "1", noted}},
                                          {{"NCCL_ALGO", "Ring", required}, {"driver", "1", noted}}};
    struct rank      told              = compare_with(some, 2);
    cr_expect_str_eq(told.result.text,
                     "rank 2 on h1 has NCCL_ALGO = Ring, 3 of 4 ranks, such as 0 on h0, none: give all the same");
    environment_close(&told.environment);

    const struct row maximum[2][ROWS_MAX] = {{{"a", "1", noted}, {"UCX_RNDV", "x", noted}}, {{"a", "1", noted}}};
    told                                  = compare_with(maximum, 0);
    cr_expect_str_empty(told.result.text);
    cr_expect_str_eq(told.environment.notes.list[0].text,
                     "rank 0 on h0 has UCX_RNDV none, 3 of 4 ranks, such as 1 on h0, x");
    cr_expect_str_eq(told.environment.deviations[0].ranks, "1-3");
    cr_expect_eq(told.environment.deviations[0].count, 3);
    environment_close(&told.environment);
}

enum { MEETINGS = 4 };

#define LONG_REASON                                                                                                    \
    "not cuda: the NVIDIA driver is for CUDA 12.8, this build needs 13.0: install a newer driver, for a data center "  \
    "GPU the package cuda-compat-13-0, or build with an older toolkit"

static void meet(struct comm *comm, void *context)
{
    int     rank         = comm->topology.rank;
    status *results      = (status *)context + (ptrdiff_t)rank * MEETINGS;
    bool    has_device   = rank < 2;
    comm->topology.nodes = 2;
    snprintf(comm->topology.host, sizeof(comm->topology.host), "h%d", rank / 2);
    results[0] = peers_require_equal(comm, "backend", has_device ? "cuda" : "host", has_device ? "" : LONG_REASON,
                                     "set run.backend");
    results[1] = comm_agree(comm, rank == 3 ? fail("no space") : OK);
    results[2] = comm_agree(comm, rank == 0 ? fail("no space") : OK);
    results[3] = comm_agree(comm, fail("no such job"));
}

Test(consistency, names_the_host_that_has_another_backend_or_fails)
{
    static const char *const texts[MEETINGS] = {"rank 2 on h1 has backend host (2 ranks deviate), 2 of 4 ranks, such "
                                                "as 0 on h0, cuda (h1: " LONG_REASON "): "
                                                "set run.backend",
                                                "rank 3 on h1: no space", "rank 0 on h0: no space", "no such job"};
    status                   results[RANKS][MEETINGS];
    ranks_run(RANKS, meet, results);
    for (int i = 0; i < RANKS * MEETINGS; i++) {
        cr_expect_str_eq(results[i / MEETINGS][i % MEETINGS].text, texts[i % MEETINGS]);
    }
}

Test(consistency, sees_what_is_too_long_to_be_shown)
{
    char first[400], second[400];
    memset(first, 'x', sizeof(first) - 1);
    memset(second, 'x', sizeof(second) - 1);
    first[399] = second[399]           = '\0';
    second[398]                        = 'y';
    const struct row rows[2][ROWS_MAX] = {{{"path", first, required}}, {{"path", second, required}}};
    struct rank      told              = compare_with(rows, 1);
    cr_expect_eq(told.result.exit_code, EXIT_LAUNCH);
    cr_expect_eq(strncmp(told.result.text, "rank 1 on h0 has path = xxx", 27), 0, "%s", told.result.text);
    cr_expect_not_null(strstr(told.result.text, "x#"), "%s", told.result.text);
    environment_close(&told.environment);
    told = compare_with(rows, -1);
    cr_expect_str_empty(told.result.text);
    cr_expect_eq(told.environment.notes.count + told.environment.deviation_count, 0);
    environment_close(&told.environment);
}

Test(consistency, finds_the_driver_of_both_kernel_modules)
{
    static const char *const lines[][2] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n", "550.54.15"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build\n", "560.35.03"},
        {"NVRM version: NVIDIA UNIX", ""}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char driver[32];
        peers_find_driver(driver, sizeof(driver), lines[i][0]);
        cr_expect_str_eq(driver, lines[i][1]);
    }
}
