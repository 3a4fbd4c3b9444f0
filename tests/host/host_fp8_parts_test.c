// SPDX-License-Identifier: MIT
// Tests FP8 on the host backend with a scale per 1x128 or 128x128 elements, and GEMMs of such tensors.
#include <criterion/criterion.h>
#include <math.h>

#include "host.h"
#include "gswbench/fp8.h"
enum { SIDE = 128, ROWS = 131, COLUMNS = 650 };    // several 128x128 blocks, incomplete at the ends

// Makes a matrix whose magnitudes differ between blocks. One block has only zeros.
static struct buffer make_uneven(int64_t rows, int64_t columns)
{
    struct buffer buffer = make_random(FORMAT_F32, rows * columns, 7, 1);
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            double part =
                column / SIDE == 1 && row / SIDE == 0 ? 0 : 1 + (double)(row % 7) + (double)(column / SIDE) * 50;
            set(&buffer, row * columns + column, part * get(&buffer, row * columns + column));
        }
    }
    return buffer;
}

static float largest_of(const struct buffer *in, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    float largest = 0;
    for (int64_t i = row; i < row + rows && i < ROWS; i++) {
        for (int64_t j = column; j < column + columns && j < COLUMNS; j++) {
            largest = fmaxf(largest, fabsf((float)get(in, i * COLUMNS + j)));
        }
    }
    return largest;
}

static void quantize(struct buffer buffers[OP_OPERANDS], int32_t scaling, int64_t factors,
                     int64_t transposed_inverse_scales)
{
    struct op op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = ROWS, .columns = COLUMNS, .scaling = scaling}};
    make_slots(&op, "f44ff", FORMAT_F32, buffers);
    buffers[QUANTIZE_IN] = make_uneven(ROWS, COLUMNS);
    cr_assert_eq(op_operand_elements(&op, QUANTIZE_INVERSE_SCALE), factors);
    cr_assert_eq(op_operand_elements(&op, QUANTIZE_TRANSPOSED_INVERSE_SCALE), transposed_inverse_scales);
    run_op(&op, buffers, 2);
    cr_expect(isnan(get(&buffers[QUANTIZE_INVERSE_SCALE], factors)));
    cr_expect(isnan(get(&buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE], transposed_inverse_scales)));
}

// Checks a quantized value. `largest` is the largest magnitude of the values that share its scale.
static void expect_quantized(const struct buffer buffers[], int slot, int64_t at, float value, float largest)
{
    float scale = largest > 0 ? 448 / largest : 1;
    cr_assert_eq(((uint8_t *)buffers[slot].data)[at], fp8_from_float(FORMAT_E4M3, value * scale), "operand %d, %d",
                 slot, (int)at);
}

Test(host_fp8_parts, gives_each_run_of_a_copy_a_factor_along_that_copys_rows)
{
    struct buffer buffers[OP_OPERANDS];
    quantize(buffers, SCALING_1X128, 6 * ROWS, 2 * COLUMNS);

    for (int64_t row = 0; row < ROWS; row++) {
        for (int64_t column = 0; column < COLUMNS; column++) {
            float value  = (float)get(&buffers[QUANTIZE_IN], row * COLUMNS + column);
            float across = largest_of(&buffers[QUANTIZE_IN], row, 1, column / SIDE * SIDE, SIDE);
            float down   = largest_of(&buffers[QUANTIZE_IN], row / SIDE * SIDE, SIDE, column, 1);
            expect_quantized(buffers, QUANTIZE_OUT, row * COLUMNS + column, value, across);
            expect_quantized(buffers, QUANTIZE_TRANSPOSED, column * ROWS + row, value, down);
            cr_assert_eq(((float *)buffers[QUANTIZE_INVERSE_SCALE].data)[column / SIDE * ROWS + row],
                         across > 0 ? 1 / (448 / across) : 1);
            cr_assert_eq(((float *)buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE].data)[row / SIDE * COLUMNS + column],
                         down > 0 ? 1 / (448 / down) : 1);
        }
    }
}

// The matrix has 2 x 6 blocks of 128x128. Rows of scales are padded to a multiple of four: from 6 to 8, and from 2 to 4
// in the transpose.
Test(host_fp8_parts, gives_each_square_one_factor_and_transposes_its_codes)
{
    struct buffer buffers[OP_OPERANDS];
    quantize(buffers, SCALING_128X128, 2 * 8, 6 * 4);

    for (int64_t part = 0; part < 2 * 6; part++) {
        int64_t down = part / 6, across = part % 6;
        float   largest = largest_of(&buffers[QUANTIZE_IN], down * SIDE, SIDE, across * SIDE, SIDE);
        float   factor  = largest > 0 ? 1 / (448 / largest) : 1;
        cr_expect_eq(((float *)buffers[QUANTIZE_INVERSE_SCALE].data)[down * 8 + across], factor);
        cr_expect_eq(((float *)buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE].data)[across * 4 + down], factor);
        for (int64_t row = down * SIDE; row < ROWS && row < (down + 1) * SIDE; row++) {
            for (int64_t column = across * SIDE; column < COLUMNS && column < (across + 1) * SIDE; column++) {
                float value = (float)get(&buffers[QUANTIZE_IN], row * COLUMNS + column);
                expect_quantized(buffers, QUANTIZE_OUT, row * COLUMNS + column, value, largest);
                expect_quantized(buffers, QUANTIZE_TRANSPOSED, column * ROWS + row, value, largest);
            }
        }
    }
}

static struct buffer make_factors(int32_t scaling, int64_t rows, int64_t columns, uint64_t seed)
{
    return make_random(FORMAT_F32, scaling_inverses((enum scaling)scaling, rows, columns), seed, 1);
}

static double inverse_scale(const struct buffer *scales, int32_t scaling, int64_t rows, int64_t depth, int64_t row,
                            int64_t k)
{
    int64_t padded = (depth + 511) / 512 * 4;
    return get(scales, scaling == SCALING_1X128 ? k / SIDE * rows + row : row / SIDE * padded + k / SIDE);
}

static void expect_gemm(const struct gemm_shape *shape, enum format c, bool accumulates)
{
    int64_t       m = shape->m, n = shape->n, k = shape->k;
    struct op     op                   = {.kind = OP_GEMM, .accumulates = accumulates, .shape.gemm = *shape};
    struct buffer buffers[OP_OPERANDS] = {[GEMM_A]               = make_random(FORMAT_E5M2, m * k, 1, 40),
                                          [GEMM_B]               = make_random(FORMAT_E4M3, n * k, 2, 90),
                                          [GEMM_C]               = make_random(c, m * n, 3, 20),
                                          [GEMM_INVERSE_SCALE_A] = make_factors(shape->scaling_a, m, k, 4),
                                          [GEMM_INVERSE_SCALE_B] = make_factors(shape->scaling_b, n, k, 5)};
    expect_scaled_gemm(&op, buffers, 1, inverse_scale);
}

Test(host_fp8_parts, multiplies_each_part_of_the_depth_by_its_factors)
{
    struct gemm_shape shape = {
        .m = 67, .n = 300, .k = 600, .transpose_b = true, .scaling_a = SCALING_1X128, .scaling_b = SCALING_128X128};
    expect_gemm(&shape, FORMAT_BF16, false);
    expect_gemm(&shape, FORMAT_F32, true);
    shape.scaling_b = SCALING_1X128;
    expect_gemm(&shape, FORMAT_F32, false);
    shape.scaling_a = SCALING_128X128;
    shape.k         = 33;
    expect_gemm(&shape, FORMAT_BF16, true);
}
