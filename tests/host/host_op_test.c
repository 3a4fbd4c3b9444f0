// SPDX-License-Identifier: MIT
// Compares ops of the host backend with plain loops in double, for odd shapes, in fp32 and bf16.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/host/internal.h"
#include "gswbench/status.h"
#include "host.h"
#include "reference.h"

// Checks a GEMM. Bit 1 of `bits`: A and B are bf16; bit 2: C is bf16; bit 4: the GEMM adds to C; bit 8: it has a bias.
static void expect_gemm(struct gemm_shape shape, int bits)
{
    const char   *slots = bits & 1 ? (bits & 2 ? "bbb--b" : "bbf--b") : (bits & 2 ? "ffb--f" : "fff--f");
    struct op     op    = {.kind = OP_GEMM, .accumulates = (bits & 4) != 0, .shape.gemm = shape};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, slots, FORMAT_F32, buffers);
    double *a = values_of(&buffers[GEMM_A]), *b = values_of(&buffers[GEMM_B]), *before = values_of(&buffers[GEMM_C]);
    double *c = values_of(&buffers[GEMM_C]), *bias = values_of(&buffers[GEMM_BIAS]);
    reference_gemm(&shape, a, b, c);
    for (int64_t i = 0; i < shape.m * shape.n; i++) {
        c[i] += (bits & 8 ? bias[i % shape.n] : 0) + (op.accumulates ? before[i] : 0);
    }
    buffers[GEMM_BIAS] = bits & 8 ? buffers[GEMM_BIAS] : (struct buffer){.data = NULL};

    run_op(&op, buffers, THREADS);

    expect_close(&buffers[GEMM_C], c, tolerance(buffers[GEMM_C].format), "gemm");
}

Test(host_op, multiplies_matrices_of_any_shape_and_type)
{
    static const int64_t sizes[][3] = {{1, 1, 1},      {5, 3, 7},      {16, 16, 32},   {33, 31, 65},  {17, 600, 40},
                                       {600, 19, 530}, {40, 50, 1030}, {130, 70, 129}, {40, 1100, 70}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int bits = 0; bits < 64; bits++) {
            struct gemm_shape shape = {.m           = sizes[i][0],
                                       .n           = sizes[i][1],
                                       .k           = sizes[i][2],
                                       .transpose_a = (bits & 1) != 0,
                                       .transpose_b = (bits & 2) != 0,
                                       .scale       = bits % 3 == 0 ? 0 : 0.375F * (float)(bits % 3)};
            expect_gemm(shape, bits >> 2);
        }
    }
}

static void expect_norm(const struct rows_shape *shape, enum format format, bool has_branch)
{
    bool          has_bias = shape->variant != NORM_RMS;
    struct op     op       = {.kind = OP_NORM_FORWARD, .shape.rows = *shape};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, has_bias ? (has_branch ? "xxxxxxf" : "x-xx-xf") : (has_branch ? "xxx-xxf" : "x-x--xf"), format,
               buffers);

    run_op(&op, buffers, THREADS);

    // The op stores the sum in its format, and normalises the rounded sum.
    struct buffer rounded = make_buffer(format, shape->rows * shape->columns);
    for (int64_t i = 0; i < rounded.elements; i++) {
        set(&rounded, i, get(&buffers[NORM_IN], i) + (has_branch ? get(&buffers[NORM_BRANCH], i) : 0));
    }
    double *x = values_of(&rounded), *weight = values_of(&buffers[NORM_WEIGHT]);
    double *bias = has_bias ? values_of(&buffers[NORM_BIAS]) : NULL, *out = values_of(&rounded);
    reference_norm(shape, x, weight, bias, out);
    expect_close(&buffers[NORM_OUT], out, tolerance(format), "norm");
    if (has_branch) {
        expect_close(&buffers[NORM_SUM], x, 0, "norm sum");
    }
    for (int64_t row = 0; row < shape->rows; row++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < shape->columns; i++) {
            mean += x[row * shape->columns + i] / (double)shape->columns;
            square += x[row * shape->columns + i] * x[row * shape->columns + i] / (double)shape->columns;
        }
        mean             = has_bias ? mean : 0;
        double deviation = sqrt(square - mean * mean + (double)shape->epsilon);
        cr_assert_float_eq(get(&buffers[NORM_STATISTICS], 2 * row), mean, 1e-6);
        cr_assert_float_eq(get(&buffers[NORM_STATISTICS], 2 * row + 1) * deviation, 1, 1e-6);
    }
}

Test(host_op, normalises_rows_in_every_variant)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 5}, {7, 64}, {2, 1031}};
    for (int i = 0; i < 4; i++) {
        for (int32_t variant = 0; variant < NORM_COUNT; variant++) {
            for (int bits = 0; bits < 4; bits++) {
                struct rows_shape shape = {
                    .rows = sizes[i][0], .columns = sizes[i][1], .epsilon = 1e-2f, .variant = variant};
                expect_norm(&shape, types[bits & 1], (bits & 2) != 0);
            }
        }
    }
}

// If the mean is far from zero, a variance computed as mean of squares minus squared mean would lose all digits.
Test(host_op, normalises_rows_far_from_zero)
{
    struct op     op = {.kind = OP_NORM_FORWARD, .shape.rows = {.rows = 1, .columns = 4, .variant = NORM_LAYER}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "f-ff-ff", FORMAT_F32, buffers);
    for (int i = 0; i < 4; i++) {
        set(&buffers[NORM_IN], i, 10000 + (i % 2 == 0 ? 1 : -1));
        set(&buffers[NORM_WEIGHT], i, 1);
        set(&buffers[NORM_BIAS], i, 0);
    }

    run_op(&op, buffers, 1);

    cr_assert_eq(get(&buffers[NORM_OUT], 0), 1.0);
    cr_assert_eq(get(&buffers[NORM_OUT], 3), -1.0);
}

Test(host_op, activates_with_and_without_a_gate)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 64}, {2, 1030}};
    for (int i = 0; i < 32; i++) {
        enum format       format = types[i & 1];
        struct rows_shape shape  = {.rows = sizes[i / 8][0], .columns = sizes[i / 8][1], .variant = i / 2 % 4};
        struct op         op     = {.kind = OP_ACTIVATION_FORWARD, .shape.rows = shape};
        struct buffer     buffers[OP_OPERANDS];
        make_slots(&op, "xx", format, buffers);
        buffers[ACTIVATION_IN] = make_random(format, buffers[ACTIVATION_IN].elements, 1, 3);
        double *in = values_of(&buffers[ACTIVATION_IN]), *out = values_of(&buffers[ACTIVATION_OUT]);
        reference_activation(&shape, in, out);

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[ACTIVATION_OUT], out, tolerance(format), "activation");
    }
}

Test(host_op, gathers_embeddings_as_they_are_or_multiplied)
{
    static const float multipliers[] = {1, 78.25F};
    for (int i = 0; i < 8; i++) {
        struct rows_shape shape = {
            .rows = 9, .columns = 5, .valid_columns = 13, .total = 13, .multiplier = multipliers[i / 4]};
        struct op     op                   = {.kind = OP_EMBEDDING_FORWARD, .shape.rows = shape};
        struct buffer buffers[OP_OPERANDS] = {
            [EMBEDDING_TOKENS] = make_tokens(9, 1, 13),
            [EMBEDDING_TABLE]  = make_random(types[i & 1], 13 * 5, 2, 1),
            [EMBEDDING_OUT]    = make_output(types[i / 2 & 1], 9 * 5),
        };

        run_op(&op, buffers, THREADS);

        for (int64_t j = 0; j < 9 * 5; j++) {
            int64_t token    = (int64_t)get(&buffers[EMBEDDING_TOKENS], j / 5);
            double  expected = (double)multipliers[i / 4] * get(&buffers[EMBEDDING_TABLE], token * 5 + j % 5);
            cr_assert_float_eq(get(&buffers[EMBEDDING_OUT], j), expected, 0.004 * fabs(expected));
        }
    }
}

Test(host_op, sums_and_differentiates_the_loss_of_each_token)
{
    static const int64_t sizes[][3] = {{1, 2, 1}, {5, 33, 33}, {7, 130, 101}, {3, 2048, 2000}};
    for (int i = 0; i < 8; i++) {
        enum format       format = types[i & 1];
        const int64_t    *size   = sizes[i / 2];
        struct rows_shape shape  = {.rows          = size[0],
                                    .columns       = size[1],
                                    .valid_columns = size[2],
                                    .total         = size[2],
                                    .scale         = 0.25f,
                                    .multiplier    = 1.5f};
        struct op         op     = {.kind = OP_CROSS_ENTROPY, .shape.rows = shape};
        struct buffer     buffers[OP_OPERANDS];
        make_slots(&op, "xif", format, buffers);
        buffers[CROSS_ENTROPY_LOGITS]  = make_random(format, shape.rows * shape.columns, 1, 3);
        buffers[CROSS_ENTROPY_TARGETS] = make_tokens(shape.rows, 2, (uint32_t)shape.valid_columns);
        double *logits                 = values_of(&buffers[CROSS_ENTROPY_LOGITS]);
        double *targets = values_of(&buffers[CROSS_ENTROPY_TARGETS]), *losses = values_of(&buffers[CROSS_ENTROPY_LOSS]);
        double *gradient = values_of(&buffers[CROSS_ENTROPY_LOGITS]);
        reference_cross_entropy(&shape, logits, targets, losses);

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[CROSS_ENTROPY_LOSS], losses, 1e-6, "loss");
        for (int64_t j = 0; j < shape.rows * shape.columns; j++) {
            int64_t row = j / shape.columns, column = j % shape.columns;
            double  chosen  = logits[row * shape.columns + (int64_t)targets[row]];
            double  softmax = exp(1.5 * (logits[j] - chosen) - losses[row]);
            gradient[j] =
                column >= shape.valid_columns ? 0 : 0.25 * 1.5 * (softmax - (column == (int64_t)targets[row] ? 1 : 0));
        }
        expect_close(&buffers[CROSS_ENTROPY_LOGITS], gradient, tolerance(format), "logit gradient");
    }
}

Test(host_op, sums_columns)
{
    static const int64_t sizes[][2] = {{1, 1}, {7, 3}, {300, 65}, {64, 1030}};
    for (int i = 0; i < 16; i++) {
        int64_t   rows = sizes[i / 4][0], columns = sizes[i / 4][1];
        struct op op = {
            .kind = OP_COLUMN_SUM, .accumulates = (i & 2) != 0, .shape.rows = {.rows = rows, .columns = columns}};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xx", types[i & 1], buffers);
        double *in = values_of(&buffers[COLUMN_SUM_IN]), *sums = values_of(&buffers[COLUMN_SUM_OUT]);
        for (int64_t column = 0; column < columns; column++) {
            sums[column] = op.accumulates ? sums[column] : 0;
            for (int64_t row = 0; row < rows; row++) {
                sums[column] += in[row * columns + column];
            }
        }

        run_op(&op, buffers, THREADS);

        expect_close(&buffers[COLUMN_SUM_OUT], sums, tolerance(types[i & 1]), "column sums");
    }
}

Test(host_op, adds_the_scaled_losses)
{
    struct op     op     = {.kind = OP_LOSS_SUM, .shape.rows = {.rows = 3, .scale = 0.5f}};
    struct op     adding = {.kind = OP_LOSS_SUM, .accumulates = true, .shape.rows = {.rows = 3, .scale = 0.5f}};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "ff", FORMAT_F32, buffers);
    for (int i = 0; i < 3; i++) {
        set(&buffers[LOSS_SUM_IN], i, 1 << i);
    }

    run_op(&op, buffers, 1);
    cr_assert_eq(get(&buffers[LOSS_SUM_OUT], 0), 3.5);

    run_op(&adding, buffers, 1);
    cr_assert_eq(get(&buffers[LOSS_SUM_OUT], 0), 7.0);
}

Test(host_op, rounds_to_the_nearest_even_bf16)
{
    static const uint32_t from[] = {0x3f800000, 0x3f808000, 0x3f808001, 0x3f818000, 0x3f817fff, 0x7f7fffff, 0x7f800000,
                                    0xff800000, 0x7f800001, 0xffffffff, 0x80000000, 0x00000001, 0x00018000};
    static const bf16     to[]   = {0x3f80, 0x3f80, 0x3f81, 0x3f82, 0x3f81, 0x7f80, 0x7f80,
                                    0xff80, 0x7fc0, 0xffff, 0x8000, 0x0000, 0x0002};
    enum { COUNT = sizeof(to) / sizeof(to[0]) };
    struct op     op                   = {.kind = OP_CAST, .shape.elements.elements = COUNT};
    struct buffer buffers[OP_OPERANDS] = {
        [CAST_IN] = make_buffer(FORMAT_F32, COUNT), [CAST_OUT] = make_output(FORMAT_BF16, COUNT)};
    memcpy(buffers[CAST_IN].data, from, sizeof(from));

    run_op(&op, buffers, 1);

    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(((bf16 *)buffers[CAST_OUT].data)[i], to[i], "%08x became %04x, not %04x", from[i],
                     ((bf16 *)buffers[CAST_OUT].data)[i], to[i]);
    }
}

Test(host_op, casts_between_types)
{
    for (int i = 0; i < 4; i++) {
        enum { COUNT = 5003 };
        struct op     op                   = {.kind = OP_CAST, .shape.elements.elements = COUNT};
        struct buffer buffers[OP_OPERANDS] = {
            [CAST_IN] = make_random(types[i & 1], COUNT, 1, 1), [CAST_OUT] = make_output(types[i / 2], COUNT)};

        run_op(&op, buffers, THREADS);

        for (int64_t j = 0; j < COUNT; j++) {
            struct buffer expected = make_buffer(types[i / 2], 1);
            set(&expected, 0, get(&buffers[CAST_IN], j));
            cr_assert_eq(get(&buffers[CAST_OUT], j), get(&expected, 0));
        }
        cr_assert(isnan(get(&buffers[CAST_OUT], COUNT)), "wrote behind the end");
    }
}

// The sum is 4096^2 + 100000. In fp32, 4096^2 + 1 rounds to 4096^2, so adding one term at a time would lose all small
// terms.
Test(host_op, sums_squares_without_losing_small_terms)
{
    for (int i = 0; i < TYPES; i++) {
        enum { COUNT = 100001 };
        struct op     op                   = {.kind = OP_SQUARE_SUM, .shape.elements.elements = COUNT};
        struct buffer buffers[OP_OPERANDS] = {
            [SQUARE_SUM_IN] = make_buffer(types[i], COUNT), [SQUARE_SUM_OUT] = make_output(FORMAT_F32, 1)};
        for (int64_t j = 0; j < COUNT; j++) {
            set(&buffers[SQUARE_SUM_IN], j, j == 0 ? 4096 : 1);
        }

        run_op(&op, buffers, THREADS);

        cr_assert_eq(get(&buffers[SQUARE_SUM_OUT], 0), 16877216.0);
    }
}

Test(host_op, clips_only_a_norm_above_the_limit)
{
    static const struct {
        float limit, scale;
    } rows[] = {{0, 1}, {5, 1}, {6, 1}, {1, 0.2f}};
    for (int i = 0; i < 4; i++) {
        struct op     op = {.kind = OP_CLIP, .shape.elements = {.elements = 2, .limit = rows[i].limit}};
        struct buffer buffers[OP_OPERANDS] = {[CLIP_PARTIALS] = make_buffer(FORMAT_F32, 2),
                                              [CLIP_NORM]     = make_output(FORMAT_F32, 1),
                                              [CLIP_SCALE]    = make_output(FORMAT_F32, 1)};
        set(&buffers[CLIP_PARTIALS], 0, 9);
        set(&buffers[CLIP_PARTIALS], 1, 16);

        run_op(&op, buffers, 1);

        cr_assert_eq(get(&buffers[CLIP_NORM], 0), 5.0);
        cr_assert_float_eq(get(&buffers[CLIP_SCALE], 0), (double)rows[i].scale, 1e-7);
    }
}

// Checks a regroup op, which reorders parts of rows. expected[i] is the index of the input part that becomes part i of
// the output.
static void expect_places(struct rows_shape shape, const int *expected)
{
    int64_t width = shape.columns / shape.parts, items = shape.rows * shape.parts;
    for (int i = 0; i < TYPES; i++) {
        struct op     op = {.kind = OP_REGROUP, .shape.rows = shape};
        struct buffer buffers[OP_OPERANDS];
        make_slots(&op, "xx", types[i], buffers);
        for (int64_t j = 0; j < items * width; j++) {
            set(&buffers[REGROUP_IN], j, (double)j);
        }
        run_op(&op, buffers, THREADS);
        for (int64_t j = 0; j < items * width; j++) {
            double right = (double)(expected[j / width] * width + j % width);
            cr_expect_eq(get(&buffers[REGROUP_OUT], j), right, "element %lld", (long long)j);
        }
    }
}

// A row has three parts. The output has the first part of every row, then the second parts, then the third parts.
Test(host_op, turns_rows_of_parts_to_parts_of_rows)
{
    expect_places((struct rows_shape){.rows = 2, .columns = 15, .parts = 3}, (const int[]){0, 3, 1, 4, 2, 5});
}

// With context parallelism, each rank has one chunk from the first half of the sequence and one from the second half.
// The second halves are in reverse order of ranks.
Test(host_op, brings_chunks_of_ranks_into_the_order_of_the_sequence_and_back)
{
    expect_places((struct rows_shape){.rows = 2, .columns = 14, .parts = 2, .variant = REGROUP_FOLDED_PARTS},
                  (const int[]){0, 2, 3, 1});
    expect_places((struct rows_shape){.rows = 3, .columns = 6, .parts = 2, .variant = REGROUP_FOLDED_PARTS},
                  (const int[]){0, 2, 4, 5, 3, 1});
    expect_places((struct rows_shape){.rows = 2, .columns = 9, .parts = 3, .variant = REGROUP_FOLDED_ROWS},
                  (const int[]){0, 5, 1, 4, 2, 3});
}

Test(host_op, finds_squares_that_are_added_to_others)
{
    struct op     op = {.kind = OP_SQUARE_SUM, .accumulates = true, .shape.elements.elements = 3};
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "ff", FORMAT_F32, buffers);
    for (int i = 0; i < 3; i++) {
        set(&buffers[SQUARE_SUM_IN], i, i + 1);
    }
    set(&buffers[SQUARE_SUM_OUT], 0, 100);
    run_op(&op, buffers, THREADS);
    cr_expect_eq(get(&buffers[SQUARE_SUM_OUT], 0), 114.0);
}

#ifndef GSWBENCH_SANITIZED    // sanitizers map memory that looks like these buffers
// Returns the address space in use.
static int64_t used_bytes(void)
{
    long long pages = 0;
    FILE     *file  = fopen("/proc/self/statm", "re");
    cr_assert(file != NULL && fscanf(file, "%lld", &pages) == 1);
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void leave_room(int64_t bytes)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)(used_bytes() + bytes), .rlim_max = RLIM_INFINITY};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

// The first job of this process has room for four buffers of 128 MiB, but no GEMM, so OpenBLAS maps none. The next job
// has no room for them.
Test(blas_room, counts_only_buffers_that_are_mapped, .exit_code = EXIT_MEMORY)
{
    leave_room(1000 << 20);
    host_blas_release(host_blas_reserve(4));
    leave_room(300 << 20);
    host_blas_reserve(4);
}
#endif
