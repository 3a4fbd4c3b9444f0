// SPDX-License-Identifier: MIT
// Maps row-major GEMMs to column-major ones, and decides when two GEMMs share a cached choice.
#include "gswbench/gemm.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(gemm, puts_the_second_factor_first_with_the_row_length_as_leading_dimension)
{
    struct gemm_layout layout = gemm_layout_of(&(struct gemm_shape){.m = 2, .n = 3, .k = 5});

    cr_expect(layout.first.rows == 3 && layout.first.columns == 5 && layout.first.leading == 3);
    cr_expect(layout.second.rows == 5 && layout.second.columns == 2 && layout.second.leading == 5);
    cr_expect(layout.out.rows == 3 && layout.out.columns == 2 && layout.out.leading == 3);
    cr_expect(!layout.first.transposed && !layout.second.transposed && !layout.out.transposed);
}

// Element of an operand as the column-major library addresses it.
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

Test(gemm, has_fp8_scaled_by_blocks_in_sizes_of_thirty_two_with_both_factors_alike)
{
    struct gemm_key asked = fp8_key(64, 32, 96);
    asked.shape.scaling_a = asked.shape.scaling_b = SCALING_BLOCKS;
    status checked                                = gemm_check(&asked);
    cr_expect(!failed(&checked), "%s", checked.text);
    asked.shape.k = 48;
    checked       = gemm_check(&asked);
    cr_expect(failed(&checked) && strstr(checked.text, "multiples of 32") != NULL, "%s", checked.text);
    asked.shape.k   = 96;
    asked.sums_fast = true;
    checked         = gemm_check(&asked);
    cr_expect(failed(&checked) && strstr(checked.text, "in 1x128 or 128x128 blocks") != NULL, "%s", checked.text);
    asked.sums_fast       = false;
    asked.shape.scaling_b = SCALING_RUNS;
    checked               = gemm_check(&asked);
    cr_expect(failed(&checked) && strstr(checked.text, "in 1x128 or 128x128 blocks") != NULL, "%s", checked.text);
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
