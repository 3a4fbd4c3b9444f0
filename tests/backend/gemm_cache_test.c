// SPDX-License-Identifier: MIT
// Tests the file that keeps the chosen algorithm of each GEMM between runs.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/gemm.h"
#include "line.h"

// The cache's folder, which is inside the test's temporary folder, and the paths of its two files.
static char deep[80], cache_path[128], times_path[128];

static void make_place(void)
{
    make_folder();
    snprintf(deep, sizeof(deep), "%s/deep", folder);
    snprintf(cache_path, sizeof(cache_path), "%s/gemm.txt", deep);
    snprintf(times_path, sizeof(times_path), "%s/gemm_times.txt", deep);
}

TestSuite(gemm_cache, .init = make_place, .fini = remove_folder);

static struct gemm_cache open_cache(void)
{
    struct gemm_cache cache;
    gemm_cache_open(&cache, deep, true);
    return cache;
}

static void add(struct gemm_cache *cache, const char *problem, uint64_t word)
{
    struct gemm_choice choice = {.algorithm = {word, 0, 0, 0, 0, 0, 0, UINT64_MAX}};
    strcpy(choice.problem, problem);
    const struct gemm_times times = {.count = 3, .chosen = 1, .seconds = {2e-3, 1.5e-3, NAN}};
    gemm_cache_add(cache, &choice, &times);
    gemm_cache_keep(cache);
    cr_assert_str_empty(cache->note);
}

Test(gemm_cache, remembers_choices_from_run_to_run)
{
    struct gemm_cache first = open_cache();
    cr_expect_eq(first.count, 0);
    add(&first, "one, NVIDIA H200", 0x123456789abcdef0);
    add(&first, "two, NVIDIA H200", 2);

    struct gemm_cache second = open_cache();

    cr_expect_eq(second.count, 2);
    const struct gemm_choice *found = gemm_cache_find(&second, "one, NVIDIA H200");
    cr_assert_not_null(found);
    cr_expect_eq(found->algorithm[0], 0x123456789abcdef0);
    cr_expect_eq(found->algorithm[7], UINT64_MAX);
    cr_expect_null(gemm_cache_find(&second, "one, NVIDIA H100"));
    gemm_cache_close(&first);
    gemm_cache_close(&second);
}

Test(gemm_cache, keeps_the_times_of_all_candidates_beside_the_choices)
{
    struct gemm_cache cache = open_cache();
    add(&cache, "one, NVIDIA H200", 1);
    add(&cache, "two, NVIDIA H200", 2);

    cr_expect_str_eq(text_in(times_path), "one, NVIDIA H200: candidate 2 of 3; milliseconds: 2.0000 1.5000 -\n"
                                          "two, NVIDIA H200: candidate 2 of 3; milliseconds: 2.0000 1.5000 -\n");
    gemm_cache_close(&cache);
}

// Replaces the first occurrence of `from` in the cache file by `to`, which has the same length.
static void damage(const char *from, const char *to)
{
    char text[2048];
    strcpy(text, text_in(cache_path));
    memcpy(strstr(text, from), to, strlen(to));
    write_text(cache_path, text);
}

// Caches the algorithms of two GEMMs and replaces a text in the file. Damage of line 2, the first GEMM, must lose only
// that GEMM. Damage of line 1, the title, must lose both.
static void expect_damaged(const char *from, const char *to, int line)
{
    struct gemm_cache cache = open_cache();
    add(&cache, "one, NVIDIA H200", 7);
    add(&cache, "two, NVIDIA B200", 9);
    gemm_cache_close(&cache);
    damage(from, to);

    cache = open_cache();

    const char *expected = line_of("%s:%d: %s", cache_path, line,
                                   line == 1 ? "not written by this gswbench: delete the file, which is recreated"
                                             : "left out: not a line that gswbench wrote");
    cr_expect_str_eq(cache.note, expected);
    cr_expect_eq(cache.count, line == 1 ? 0 : 1);
    cr_expect_null(gemm_cache_find(&cache, "one, NVIDIA H200"));
    cr_expect_eq(gemm_cache_find(&cache, "two, NVIDIA B200") != NULL, line > 1);
    cr_expect_eq(cache.path == NULL, line == 1, "what is not ours is not written over");
    gemm_cache_close(&cache);
    unlink(cache_path);
    unlink(times_path);
}

Test(gemm_cache, leaves_out_what_is_damaged_and_names_the_line)
{
    expect_damaged("0000000000000007", "0000000000000008", 2);
    expect_damaged("NVIDIA H200", "NVIDIA H100", 2);
    expect_damaged("H200\n", "H20\n\n", 2);
    expect_damaged("one, NVIDIA", "\n\n\n\n\n\n\n\n\n\n\n", 2);
    expect_damaged("algorithms 1", "algorithms 2", 1);
    expect_damaged("gswbench gemm", "\xff\xff\xff\xff\xff\xff\xff\xff", 1);
}

Test(gemm_cache, opens_nothing_that_is_no_file)
{
    cr_assert(mkdir(deep, 0755) == 0 && mkfifo(cache_path, 0644) == 0);

    struct gemm_cache cache = open_cache();

    cr_expect_str_eq(cache.note, line_of("%s not read: it is a pipe, not a file", cache_path));
    cr_expect_null(cache.path);
    gemm_cache_close(&cache);
}

Test(gemm_cache, is_written_by_one_rank_of_a_host)
{
    struct gemm_cache cache = open_cache();
    cache.writes            = false;

    add(&cache, "one, NVIDIA H200", 7);

    cr_expect_not_null(gemm_cache_find(&cache, "one, NVIDIA H200"));
    cr_expect_neq(access(cache_path, F_OK), 0, "another rank writes it");
    gemm_cache_close(&cache);
}

static struct gemm_choice choice_of(const char *problem, uint64_t word)
{
    struct gemm_choice choice = {.algorithm = {word}};
    strcpy(choice.problem, problem);
    return choice;
}

Test(gemm_cache, takes_what_another_rank_chose_in_the_place_of_its_own)
{
    struct gemm_cache cache = open_cache();
    add(&cache, "one, NVIDIA H200", 7);
    struct gemm_choice other = choice_of("one, NVIDIA H200", 8);

    gemm_cache_take(&cache, &other);
    gemm_cache_close(&cache);

    cache = open_cache();
    cr_expect_eq(cache.count, 1);
    cr_expect_eq(gemm_cache_find(&cache, "one, NVIDIA H200")->algorithm[0], 8);
    cr_expect_eq(gemm_cache_find(&cache, "one, NVIDIA H200")->origin, GEMM_REMEMBERED);
    gemm_cache_close(&cache);
}

Test(gemm_cache, keeps_what_others_wrote_meanwhile_and_writes_only_what_is_new)
{
    struct gemm_cache  first = open_cache(), second = open_cache(), third = open_cache();
    struct gemm_choice two = choice_of("two", 2);
    struct stat        before, after;
    add(&first, "one", 1);
    gemm_cache_take(&second, &two);
    gemm_cache_keep(&second);
    gemm_cache_take(&third, &two);
    cr_assert_eq(stat(cache_path, &before), 0);
    gemm_cache_keep(&third);
    cr_assert_eq(stat(cache_path, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino, "it has all already");

    struct gemm_cache all = open_cache();
    cr_expect_eq(all.count, 2);
    cr_expect_not_null(gemm_cache_find(&all, "one"));
    cr_expect_not_null(gemm_cache_find(&all, "two"));
    gemm_cache_close(&all);
    gemm_cache_close(&first);
    gemm_cache_close(&second);
    gemm_cache_close(&third);
}

Test(gemm_cache, keeps_the_file_in_the_users_cache_directory)
{
    struct gemm_cache cache;

    setenv("HOME", "/nowhere/home", 1);
    unsetenv("XDG_CACHE_HOME");
    gemm_cache_open(&cache, "", true);
    cr_expect_str_eq(cache.path, "/nowhere/home/.cache/gswbench/gemm.txt");
    gemm_cache_close(&cache);
    setenv("XDG_CACHE_HOME", "/nowhere/cache", 1);
    gemm_cache_open(&cache, "", true);
    cr_expect_str_eq(cache.path, "/nowhere/cache/gswbench/gemm.txt");
    cr_expect_str_empty(cache.note);
    gemm_cache_close(&cache);
}

Test(gemm_cache, goes_on_where_it_cannot_write_and_says_so)
{
    struct gemm_cache cache;
    gemm_cache_open(&cache, "/proc/none/gswbench", true);

    gemm_cache_add(&cache, &(struct gemm_choice){.problem = "one"}, &(struct gemm_times){.count = 0});
    gemm_cache_add(&cache, &(struct gemm_choice){.problem = "two"}, &(struct gemm_times){.count = 0});
    gemm_cache_keep(&cache);

    cr_expect_str_eq(cache.note, "algorithms are not kept: cannot create /proc/none: No such file or directory "
                                 "(run.cache)");
    cr_expect_not_null(gemm_cache_find(&cache, "one"));
    cr_expect_not_null(gemm_cache_find(&cache, "two"));
    gemm_cache_close(&cache);
}

Test(gemm_cache, writes_neither_of_its_files_through_a_link)
{
    static const char *const names[] = {"gemm.txt", "gemm_times.txt"};
    for (int i = 0; i < 2; i++) {
        struct gemm_cache       cache   = open_cache();
        const struct gemm_times times   = {.count = 1, .seconds = {1e-3}};
        const char             *planted = line_of("%s/%s", deep, names[i]);
        const char             *target  = line_of("%s/target", folder);
        cr_assert(mkdir(deep, 0755) == 0 && symlink(target, planted) == 0);

        gemm_cache_add(&cache, &(struct gemm_choice){.problem = "one"}, &times);
        gemm_cache_keep(&cache);

        cr_expect_not_null(strstr(cache.note, names[i]), "%s", cache.note);
        cr_expect_neq(access(target, F_OK), 0, "%s is written through", names[i]);
        gemm_cache_close(&cache);
        unlink(planted);
        remove_folder();
        make_place();
    }
}

Test(gemm_cache, does_not_read_choices_that_another_user_could_have_written)
{
    static const struct {
        mode_t      mode;
        uid_t       owner;
        const char *reason;
    } rows[] = {
        {0644, 0, ""},
        {0600, 0, ""},
        {0664, 0, "it may be written by others"},
        {0646, 0, "it may be written by others"},
        {0644, 12345, "it belongs to user 12345"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gemm_cache cache = open_cache();
        add(&cache, "one, NVIDIA H200", 7);
        gemm_cache_close(&cache);
        cr_assert_eq(chmod(cache_path, rows[i].mode), 0);
        bool is_given = rows[i].owner == 0 || chown(cache_path, rows[i].owner, (gid_t)-1) == 0;

        cache = open_cache();

        if (is_given) {    // only root can change the owner of a file
            bool is_read = rows[i].reason[0] == '\0';
            cr_expect_eq(cache.count, is_read ? 1 : 0, "row %zu", i);
            cr_expect_eq(cache.path != NULL, is_read, "row %zu: it is not written either", i);
            cr_expect_not_null(strstr(cache.note, rows[i].reason), "row %zu: %s", i, cache.note);
        }
        gemm_cache_close(&cache);
        unlink(cache_path);
    }
}
