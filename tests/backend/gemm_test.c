// SPDX-License-Identifier: MIT
// Row-major GEMMs in column-major terms, and the file of chosen algorithms.
#define _GNU_SOURCE
#include "gswbench/gemm.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Test(gemm, puts_the_second_factor_first_with_the_row_length_as_leading_dimension)
{
    struct gemm_layout layout = gemm_layout_of(&(struct gemm_shape){.m = 2, .n = 3, .k = 5});

    cr_expect(layout.first.rows == 3 && layout.first.columns == 5 && layout.first.leading == 3);
    cr_expect(layout.second.rows == 5 && layout.second.columns == 2 && layout.second.leading == 5);
    cr_expect(layout.out.rows == 3 && layout.out.columns == 2 && layout.out.leading == 3);
    cr_expect(!layout.first.transposed && !layout.second.transposed && !layout.out.transposed);
}

// Element of a factor as the library takes it.
static int element(const int *data, const struct gemm_matrix *matrix, int64_t row, int64_t column)
{
    return data[matrix->transposed ? column + row * matrix->leading : row + column * matrix->leading];
}

Test(gemm, computes_the_row_major_gemm_for_every_transposition)
{
    enum { M = 2, N = 3, K = 4 };
    static const int a[M][K] = {{1, -2, 3, 4}, {0, 5, -6, 7}};
    static const int b[K][N] = {{2, 0, 1}, {-1, 3, 4}, {5, 6, -7}, {8, 9, 10}};
    static const int c[M][N] = {{51, 48, 12}, {21, 42, 132}};
    for (int kind = 0; kind < 4; kind++) {
        struct gemm_shape shape = {.m = M, .n = N, .k = K, .transpose_a = kind & 1, .transpose_b = kind & 2};
        int               stored_a[M * K], stored_b[K * N];
        for (int i = 0; i < M * K; i++) {
            stored_a[shape.transpose_a ? i % K * M + i / K : i] = a[i / K][i % K];
        }
        for (int i = 0; i < K * N; i++) {
            stored_b[shape.transpose_b ? i % N * K + i / N : i] = b[i / N][i % N];
        }

        struct gemm_layout layout = gemm_layout_of(&shape);

        int out[M * N];
        for (int64_t row = 0; row < layout.out.rows; row++) {
            for (int64_t column = 0; column < layout.out.columns; column++) {
                int sum = 0;
                for (int64_t i = 0; i < K; i++) {
                    sum += element(stored_b, &layout.first, row, i) * element(stored_a, &layout.second, i, column);
                }
                out[row + column * layout.out.leading] = sum;
            }
        }
        cr_expect_arr_eq(out, c, sizeof(c), "kind %d", kind);
    }
}

Test(gemm, finds_the_alignment_of_an_address)
{
    cr_expect_eq(gemm_alignment((void *)4096), 256);
    cr_expect_eq(gemm_alignment((void *)(4096 + 64)), 64);
    cr_expect_eq(gemm_alignment((void *)(4096 + 48)), 16);
    cr_expect_eq(gemm_alignment((void *)(4096 + 6)), 2);
}

static const struct gemm_key key = {.shape       = {.m = 4096, .n = 6144, .k = 4096, .transpose_b = true},
                                    .a           = FORMAT_BF16,
                                    .b           = FORMAT_BF16,
                                    .c           = FORMAT_F32,
                                    .accumulates = true,
                                    .alignment   = {256, 256, 16}};

Test(gemm, names_a_problem_with_all_that_makes_it_another)
{
    char problem[GEMM_PROBLEM_BYTES];

    gemm_problem_name(&key, "cuBLASLt 13.1.0", "NVIDIA H200", problem);

    cr_expect_str_eq(problem, "4096 x 6144 x 4096 nt bf16 bf16 f32 add, align 256 256 16, processors 0, "
                              "cuBLASLt 13.1.0, NVIDIA H200");
    struct gemm_key other = key;
    cr_expect(gemm_key_is_equal(&other, &key));
    other.accumulates = false;
    cr_expect_not(gemm_key_is_equal(&other, &key));
    other           = key;
    other.sums_fast = true;
    cr_expect_not(gemm_key_is_equal(&other, &key));
    gemm_problem_name(&other, "cuBLASLt 13.1.0", "NVIDIA H200", problem);
    cr_expect_not_null(strstr(problem, " f32 add fast, "));
}

static struct gemm_key fp8_key(int64_t m, int64_t n, int64_t k)
{
    struct gemm_shape shape = {.m = m, .n = n, .k = k, .transpose_b = true};
    return (struct gemm_key){.shape = shape, .a = FORMAT_E5M2, .b = FORMAT_E4M3, .c = FORMAT_BF16};
}

Test(gemm, has_gemms_of_equal_types_and_of_fp8_with_an_e4m3)
{
    struct gemm_key known = key, fp8 = fp8_key(48, 32, 16);
    status          checked = gemm_check(&known);
    cr_expect_not(failed(&checked), "%s", checked.text);
    checked = gemm_check(&fp8);
    cr_expect_not(failed(&checked), "%s", checked.text);

    fp8.b   = FORMAT_E5M2;
    checked = gemm_check(&fp8);
    cr_expect_str_eq(checked.text, "cuBLASLt has no GEMM of e5m2 and e5m2 into bf16");
    known.b = FORMAT_E4M3;
    checked = gemm_check(&known);
    cr_expect_str_eq(checked.text, "cuBLASLt has no GEMM of bf16 and e4m3 into f32");
    known.a = known.b = FORMAT_F32;
    known.c           = FORMAT_BF16;
    checked           = gemm_check(&known);
    cr_expect(failed(&checked));
    fp8     = fp8_key(48, 32, 16);
    fp8.c   = FORMAT_E4M3;
    checked = gemm_check(&fp8);
    cr_expect(failed(&checked));
}

Test(gemm, has_fp8_scaled_by_runs_and_at_most_one_factor_by_squares)
{
    static const int32_t W = SCALING_WHOLE, R = SCALING_RUNS, S = SCALING_SQUARES;
    const struct {
        int32_t a, b;
        bool    sums_fast, is_known;
    } cases[] = {{W, W, true, true},   {R, R, false, true},  {R, S, false, true},  {S, R, false, true},
                 {S, S, false, false}, {W, R, false, false}, {S, W, false, false}, {R, R, true, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gemm_key asked = fp8_key(48, 32, 16);
        asked.shape.scaling_a = cases[i].a;
        asked.shape.scaling_b = cases[i].b;
        asked.sums_fast       = cases[i].sums_fast;
        status checked        = gemm_check(&asked);
        cr_expect_eq(failed(&checked), !cases[i].is_known, "%zu: %s", i, checked.text);
    }
}

Test(gemm, names_how_fp8_is_scaled)
{
    char            problem[GEMM_PROBLEM_BYTES];
    struct gemm_key asked = fp8_key(48, 32, 16);
    asked.shape.scaling_a = SCALING_RUNS;
    asked.shape.scaling_b = SCALING_SQUARES;

    gemm_problem_name(&asked, "cuBLASLt 13.1.0", "NVIDIA H200", problem);

    cr_expect_not_null(strstr(problem, " bf16 set runs squares, "), "%s", problem);
    struct gemm_key other = asked;
    other.shape.scaling_b = SCALING_RUNS;
    cr_expect_not(gemm_key_is_equal(&other, &asked));
}

Test(gemm, has_fp8_in_sizes_of_sixteen_and_row_by_row_only)
{
    const struct gemm_key refused[] = {fp8_key(40, 32, 16), fp8_key(48, 33, 16), fp8_key(48, 32, 24)};
    for (int i = 0; i < 3; i++) {
        status checked = gemm_check(&refused[i]);
        cr_expect(failed(&checked) && strstr(checked.text, "multiples of 16") != NULL, "%d", i);
    }
    struct gemm_key turned   = fp8_key(48, 32, 16);
    turned.shape.transpose_b = false;
    status checked           = gemm_check(&turned);
    cr_expect_str_eq(checked.text, "cuBLASLt multiplies FP8 row by row only");
}

// A new directory, and the path of the file in it.
struct place {
    char directory[64], path[128];
};

static struct place make_place(void)
{
    struct place place = {.directory = "/tmp/gemm_test_XXXXXX"};
    cr_assert_not_null(mkdtemp(place.directory));
    snprintf(place.path, sizeof(place.path), "%s/deep/gemm.txt", place.directory);
    return place;
}

static struct gemm_cache open_cache(const struct place *place)
{
    struct gemm_cache cache;
    char              deep[80];
    snprintf(deep, sizeof(deep), "%s/deep", place->directory);
    status opened = gemm_cache_open(&cache, deep);
    cr_assert_not(failed(&opened), "%s", opened.text);
    return cache;
}

static void remove_place(const struct place *place)
{
    char deep[80], times[128];
    snprintf(deep, sizeof(deep), "%s/deep", place->directory);
    snprintf(times, sizeof(times), "%s/gemm_times.txt", deep);
    unlink(place->path);
    unlink(times);
    rmdir(deep);
    rmdir(place->directory);
}

static void add(struct gemm_cache *cache, const char *problem, uint64_t word)
{
    struct gemm_choice choice = {.algorithm = {word, 0, 0, 0, 0, 0, 0, UINT64_MAX}};
    strcpy(choice.problem, problem);
    const struct gemm_times times = {.count = 3, .chosen = 1, .seconds = {2e-3, 1.5e-3, NAN}};
    status                  added = gemm_cache_add(cache, &choice, &times);
    cr_assert_not(failed(&added), "%s", added.text);
}

Test(gemm, remembers_choices_from_run_to_run)
{
    struct place      place = make_place();
    struct gemm_cache first = open_cache(&place);
    cr_expect_eq(first.count, 0);
    add(&first, "one, NVIDIA H200", 0x123456789abcdef0);
    add(&first, "two, NVIDIA H200", 2);

    struct gemm_cache second = open_cache(&place);

    cr_expect_eq(second.count, 2);
    const struct gemm_choice *found = gemm_cache_find(&second, "one, NVIDIA H200");
    cr_assert_not_null(found);
    cr_expect_eq(found->algorithm[0], 0x123456789abcdef0);
    cr_expect_eq(found->algorithm[7], UINT64_MAX);
    cr_expect_null(gemm_cache_find(&second, "one, NVIDIA H100"));
    gemm_cache_close(&first);
    gemm_cache_close(&second);
    remove_place(&place);
}

Test(gemm, keeps_the_times_of_all_candidates_beside_the_choices)
{
    struct place      place = make_place();
    struct gemm_cache cache = open_cache(&place);
    char              path[128], text[256];
    add(&cache, "one, NVIDIA H200", 1);
    add(&cache, "two, NVIDIA H200", 2);

    snprintf(path, sizeof(path), "%s/deep/gemm_times.txt", place.directory);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    cr_expect_str_eq(text, "one, NVIDIA H200: candidate 2 of 3; milliseconds: 2.0000 1.5000 -\n"
                           "two, NVIDIA H200: candidate 2 of 3; milliseconds: 2.0000 1.5000 -\n");
    fclose(file);
    gemm_cache_close(&cache);
    remove_place(&place);
}

// Replaces the first occurrence of a text in the file by another of the same length.
static void damage(const char *path, const char *from, const char *to)
{
    char  text[2048];
    FILE *file                                   = fopen(path, "r+");
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    memcpy(strstr(text, from), to, strlen(to));
    rewind(file);
    fputs(text, file);
    fclose(file);
}

static void expect_damaged(const char *from, const char *to, int line)
{
    struct place      place = make_place();
    struct gemm_cache cache = open_cache(&place);
    char              expected[256], deep[80];
    add(&cache, "one, NVIDIA H200", 7);
    gemm_cache_close(&cache);
    damage(place.path, from, to);
    snprintf(deep, sizeof(deep), "%s/deep", place.directory);

    status opened = gemm_cache_open(&cache, deep);

    snprintf(expected, sizeof(expected), "%s:%d: not a line that gswbench wrote: delete the file, it is made again",
             place.path, line);
    cr_expect_eq(opened.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(opened.text, expected);
    gemm_cache_close(&cache);
    remove_place(&place);
}

Test(gemm, refuses_a_damaged_file_and_names_the_line)
{
    expect_damaged("0000000000000007", "0000000000000008", 2);
    expect_damaged("NVIDIA H200", "NVIDIA H100", 2);
    expect_damaged("H200\n", "H20\n\n", 2);
    expect_damaged("one, NVIDIA", "\n\n\n\n\n\n\n\n\n\n\n", 2);
    expect_damaged("algorithms 1", "algorithms 2", 1);
    expect_damaged("gswbench gemm", "\xff\xff\xff\xff\xff\xff\xff\xff", 1);
}

Test(gemm, keeps_the_file_in_the_users_cache_directory)
{
    struct gemm_cache cache;
    status            opened;

    setenv("HOME", "/nowhere/home", 1);
    unsetenv("XDG_CACHE_HOME");
    opened = gemm_cache_open(&cache, "");
    cr_expect(!failed(&opened) && strcmp(cache.path, "/nowhere/home/.cache/gswbench/gemm.txt") == 0);
    gemm_cache_close(&cache);
    setenv("XDG_CACHE_HOME", "/nowhere/cache", 1);
    opened = gemm_cache_open(&cache, "");
    cr_expect(!failed(&opened) && strcmp(cache.path, "/nowhere/cache/gswbench/gemm.txt") == 0);
    gemm_cache_close(&cache);
}

Test(gemm, says_where_it_cannot_write)
{
    struct gemm_cache cache;
    status            opened = gemm_cache_open(&cache, "/proc/none/gswbench");
    cr_assert_not(failed(&opened));

    status added = gemm_cache_add(&cache, &(struct gemm_choice){.problem = "one"}, &(struct gemm_times){.count = 0});

    cr_expect_eq(added.exit_code, EXIT_OUTPUT);
    cr_expect_str_eq(added.text, "cannot create /proc/none: No such file or directory (run.cache names another "
                                 "directory)");
    gemm_cache_close(&cache);
}

Test(gemm, writes_neither_of_its_files_through_a_link)
{
    static const char *const names[] = {"gemm.txt", "gemm_times.txt"};
    for (int i = 0; i < 2; i++) {
        struct place            place = make_place();
        struct gemm_cache       cache = open_cache(&place);
        const struct gemm_times times = {.count = 1, .seconds = {1e-3}};
        char                    planted[128], target[96], deep[80];
        snprintf(deep, sizeof(deep), "%s/deep", place.directory);
        snprintf(planted, sizeof(planted), "%s/%s", deep, names[i]);
        snprintf(target, sizeof(target), "%s/target", place.directory);
        cr_assert(mkdir(deep, 0755) == 0 && symlink(target, planted) == 0);

        status added = gemm_cache_add(&cache, &(struct gemm_choice){.problem = "one"}, &times);

        cr_expect_eq(added.exit_code, EXIT_OUTPUT, "%s: %s", names[i], added.text);
        cr_expect_not_null(strstr(added.text, names[i]), "%s", added.text);
        cr_expect_neq(access(target, F_OK), 0, "%s is written through", names[i]);
        gemm_cache_close(&cache);
        unlink(planted);
        remove_place(&place);
    }
}

Test(gemm, does_not_read_choices_that_another_user_could_have_written)
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
        struct place      place = make_place();
        struct gemm_cache cache = open_cache(&place);
        add(&cache, "one, NVIDIA H200", 7);
        gemm_cache_close(&cache);
        cr_assert_eq(chmod(place.path, rows[i].mode), 0);
        bool is_given = rows[i].owner == 0 || chown(place.path, rows[i].owner, (gid_t)-1) == 0;

        cache = open_cache(&place);

        if (is_given) {    // only root can give a file away
            bool is_read = rows[i].reason[0] == '\0';
            cr_expect_eq(cache.count, is_read ? 1 : 0, "row %zu", i);
            cr_expect_eq(cache.path != NULL, is_read, "row %zu: it is not written either", i);
            cr_expect_not_null(strstr(cache.refusal, rows[i].reason), "row %zu: %s", i, cache.refusal);
        }
        gemm_cache_close(&cache);
        remove_place(&place);
    }
}
