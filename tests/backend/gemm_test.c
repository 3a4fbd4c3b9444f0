// SPDX-License-Identifier: MIT
// Tests the mapping of row-major GEMMs to column-major ones, and the keys that decide whether two GEMMs share a cached
// algorithm.
#include "gswbench/gemm.h"

#include <criterion/criterion.h>
#include <string.h>

Test(gemm, puts_the_second_factor_first_with_the_row_length_as_leading_dimension)
{
    struct gemm_layout layout = gemm_layout_of(&(struct gemm_shape){.m = 2, .n = 3, .k = 5});

    cr_expect(layout.first.rows == 3 && layout.first.columns == 5 && layout.first.leading == 3);
    cr_expect(layout.second.rows == 5 && layout.second.columns == 2 && layout.second.leading == 5);
    cr_expect(layout.out.rows == 3 && layout.out.columns == 2 && layout.out.leading == 3);
    cr_expect(!layout.first.transposed && !layout.second.transposed && !layout.out.transposed);
}

// Returns an element of a matrix at the address that a column-major library such as cuBLAS computes.
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
    other.bias_alignment = 16;
    gemm_problem_name(&other, "cuBLASLt 13.1.0", "NVIDIA H200", problem);
    cr_expect_not_null(strstr(problem, " f32 add bias 16 fast, "));
}

Test(gemm, has_what_cublaslt_multiplies_and_says_what_it_does_not)
{
    enum { W = SCALING_WHOLE, R = SCALING_1X128, S = SCALING_128X128, B = SCALING_MX };
    enum { F32 = FORMAT_F32, BF16 = FORMAT_BF16, E4M3 = FORMAT_E4M3, E5M2 = FORMAT_E5M2 };
    static const char parts[] = "cuBLASLt scales FP8 per tensor, in 1x128 or 128x128 blocks, or in MX blocks";
    static const struct {
        int64_t     m, n, k;
        int         a, b, c;
        int32_t     scaling_a, scaling_b;
        bool        sums_fast, is_plain;
        const char *refusal;
    } rows[] = {
        {4096, 6144, 4096, BF16, BF16, F32, W, W, false, false, NULL},
        {4096, 6144, 4096, BF16, E4M3, F32, W, W, false, false, "cuBLASLt has no GEMM of bf16 and e4m3 into f32"},
        {4096, 6144, 4096, F32, F32, BF16, W, W, false, false, "cuBLASLt has no GEMM of f32 and f32 into bf16"},
        {48, 32, 16, E5M2, E4M3, BF16, W, W, false, false, NULL},
        {48, 32, 16, E5M2, E5M2, BF16, W, W, false, false, "cuBLASLt has no GEMM of e5m2 and e5m2 into bf16"},
        {48, 32, 16, E5M2, E4M3, E4M3, W, W, false, false, "cuBLASLt has no GEMM of e5m2 and e4m3 into e4m3"},
        {48, 32, 16, E5M2, E4M3, BF16, W, W, false, true, "cuBLASLt multiplies FP8 and FP4 row by row only"},
        {40, 32, 16, E5M2, E4M3, BF16, W, W, false, false, "multiples of 16"},
        {48, 33, 16, E5M2, E4M3, BF16, W, W, false, false, "multiples of 16"},
        {48, 32, 24, E5M2, E4M3, BF16, W, W, false, false, "multiples of 16"},
        {48, 32, 16, E5M2, E4M3, BF16, W, W, true, false, NULL},
        {48, 32, 16, E5M2, E4M3, BF16, R, R, false, false, NULL},
        {48, 32, 16, E5M2, E4M3, BF16, R, S, false, false, NULL},
        {48, 32, 16, E5M2, E4M3, BF16, S, R, false, false, NULL},
        {48, 32, 16, E5M2, E4M3, BF16, S, S, false, false, parts},
        {48, 32, 16, E5M2, E4M3, BF16, W, R, false, false, parts},
        {48, 32, 16, E5M2, E4M3, BF16, S, W, false, false, parts},
        {48, 32, 16, E5M2, E4M3, BF16, R, R, true, false, parts},
        {64, 32, 96, E5M2, E4M3, BF16, B, B, false, false, NULL},
        {64, 32, 48, E5M2, E4M3, BF16, B, B, false, false, "multiples of 32"},
        {64, 32, 96, E5M2, E4M3, BF16, B, B, true, false, parts},
        {64, 32, 96, E5M2, E4M3, BF16, B, R, false, false, parts},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gemm_key asked   = {.shape     = {.m           = rows[i].m,
                                                 .n           = rows[i].n,
                                                 .k           = rows[i].k,
                                                 .transpose_b = !rows[i].is_plain,
                                                 .scaling_a   = rows[i].scaling_a,
                                                 .scaling_b   = rows[i].scaling_b},
                                   .a         = (enum format)rows[i].a,
                                   .b         = (enum format)rows[i].b,
                                   .c         = (enum format)rows[i].c,
                                   .sums_fast = rows[i].sums_fast};
        status          checked = gemm_check(&asked);
        cr_expect(failed(&checked) == (rows[i].refusal != NULL), "row %zu: %s", i, checked.text);
        cr_expect(rows[i].refusal == NULL || strstr(checked.text, rows[i].refusal) != NULL, "row %zu: %s", i,
                  checked.text);
    }
}

Test(gemm, names_how_fp8_is_scaled)
{
    char            problem[GEMM_PROBLEM_BYTES];
    struct gemm_key asked = {.shape = {.m = 48, .n = 32, .k = 16}, .a = FORMAT_E5M2, .c = FORMAT_BF16};
    asked.shape.scaling_a = SCALING_1X128;
    asked.shape.scaling_b = SCALING_128X128;

    gemm_problem_name(&asked, "cuBLASLt 13.1.0", "NVIDIA H200", problem);

    cr_expect_not_null(strstr(problem, " bf16 set 1x128 128x128, "), "%s", problem);
    struct gemm_key other = asked;
    other.shape.scaling_b = SCALING_1X128;
    cr_expect_not(gemm_key_is_equal(&other, &asked));
}
