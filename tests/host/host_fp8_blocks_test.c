// SPDX-License-Identifier: MIT
// Tests MXFP8 on the host backend, with blocks of 32 elements and power-of-two scales, element by element against the
// definition.
#include <criterion/criterion.h>
#include <math.h>

#include "host.h"
#include "gswbench/fp8.h"

// Several tiles of 128 rows, with incomplete blocks and tiles at the ends.
enum { SIDE = 128, BLOCK = 32, ROWS = 131, COLUMNS = 290 };

// Returns the index of a block's scale. Scales are stored in tiles of 128 rows x 4 blocks, in the order [row % 32][row
// / 32][block].
static int64_t place_of(int64_t columns, int64_t row, int64_t column)
{
    int64_t across = (columns + SIDE - 1) / SIDE, block = column / BLOCK;
    return ((row / SIDE * across + block / 4) * BLOCK + row % BLOCK) * 16 + row % SIDE / BLOCK * 4 + block % 4;
}

// Returns the exponent of the smallest power of two that scales the magnitude to at most 448, the largest E4M3 value.
static int exponent_of(double magnitude)
{
    int exponent = -127;
    while (magnitude > ldexp(448, exponent)) {
        exponent++;
    }
    return exponent;
}

static double value_at(const struct buffer *in, bool is_turned, int64_t row, int64_t column)
{
    return get(in, is_turned ? column * COLUMNS + row : row * COLUMNS + column);
}

// Checks codes and scales of the quantized matrix, or, with is_turned, of its quantized transpose.
static void expect_copy(const struct buffer *in, const struct buffer *codes, const struct buffer *factors,
                        bool is_turned)
{
    int64_t rows = is_turned ? COLUMNS : ROWS, columns = is_turned ? ROWS : COLUMNS, used = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t first = 0; first < columns; first += BLOCK) {
            int64_t end     = first + BLOCK < columns ? first + BLOCK : columns;
            double  largest = 0;
            for (int64_t column = first; column < end; column++) {
                largest = fmax(largest, fabs(value_at(in, is_turned, row, column)));
            }
            int     exponent = exponent_of(largest);
            uint8_t factor   = ((uint8_t *)factors->data)[place_of(columns, row, first)];
            cr_assert_eq(factor, exponent + 127, "%d, %d: %d, not %d", (int)row, (int)first, factor, exponent + 127);
            used += factor != 0;
            for (int64_t column = first; column < end; column++) {
                float scaled = (float)ldexp(value_at(in, is_turned, row, column), -exponent);
                cr_assert_eq(((uint8_t *)codes->data)[row * columns + column], fp8_from_float(FORMAT_E4M3, scaled));
            }
        }
    }
    // Scales that only pad a tile must be zero.
    int64_t set = 0;
    for (int64_t i = 0; i < factors->elements; i++) {
        set += ((uint8_t *)factors->data)[i] != 0;
    }
    cr_expect_eq(set, used);
}

Test(host_fp8_blocks, gives_each_block_of_either_copy_the_smallest_power_that_saturates_nothing)
{
    struct op op = {.kind = OP_QUANTIZE, .shape.quantize = {.rows = ROWS, .columns = COLUMNS, .scaling = SCALING_MX}};
    int64_t   factors = 2 * 3 * 512, turned = 3 * 2 * 512;
    struct buffer buffers[OP_OPERANDS];
    make_slots(&op, "f4488", FORMAT_F32, buffers);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        bool is_zero = i / COLUMNS == 3 && i % COLUMNS / BLOCK == 1;
        set(&buffers[QUANTIZE_IN], i, is_zero ? 0 : ldexp(get(&buffers[QUANTIZE_IN], i), (int)(i % 37) - 18));
    }
    cr_assert_eq(op_operand_elements(&op, QUANTIZE_INVERSE_SCALE), factors);
    cr_assert_eq(op_operand_elements(&op, QUANTIZE_TRANSPOSED_INVERSE_SCALE), turned);
    run_op(&op, buffers, 2);
    expect_copy(&buffers[QUANTIZE_IN], &buffers[QUANTIZE_OUT], &buffers[QUANTIZE_INVERSE_SCALE], false);
    expect_copy(&buffers[QUANTIZE_IN], &buffers[QUANTIZE_TRANSPOSED], &buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE],
                true);
}

static struct buffer make_factors(int64_t rows, int64_t columns, int64_t step)
{
    struct buffer factors = make_output(FORMAT_E8M0, scaling_inverses(SCALING_MX, rows, columns));
    for (int64_t i = 0; i < factors.elements; i++) {
        ((uint8_t *)factors.data)[i] = (uint8_t)(120 + i * step % 13);
    }
    return factors;
}

static double inverse_scale(const struct buffer *scales, int32_t scaling, int64_t rows, int64_t depth, int64_t row,
                            int64_t k)
{
    (void)scaling, (void)rows;
    return ldexp(1, ((uint8_t *)scales->data)[place_of(depth, row, k)] - 127);
}

// Checks a GEMM against double. The bias, and the C that it adds to, are about as large as the result, so missing or
// doubled terms are noticed.
static void expect_product(bool has_bias, bool accumulates)
{
    const int64_t m = 160, n = 66, k = 300;
    struct op     op                   = {.kind        = OP_GEMM,
                                          .accumulates = accumulates,
                                          .shape.gemm  = {.m = m, .n = n, .k = k, .transpose_b = true, SCALING_MX, SCALING_MX}};
    struct buffer buffers[OP_OPERANDS] = {[GEMM_A]               = make_random(FORMAT_E5M2, m * k, 1, 40),
                                          [GEMM_B]               = make_random(FORMAT_E4M3, n * k, 2, 90),
                                          [GEMM_C]               = make_random(FORMAT_F32, m * n, 3, 1e7),
                                          [GEMM_INVERSE_SCALE_A] = make_factors(m, k, 5),
                                          [GEMM_INVERSE_SCALE_B] = make_factors(n, k, 7)};
    if (has_bias) {
        buffers[GEMM_BIAS] = make_random(FORMAT_BF16, n, 4, 1e7);
    }
    expect_scaled_gemm(&op, buffers, 1, inverse_scale);
}

Test(host_fp8_blocks, multiplies_each_block_by_both_of_its_factors)
{
    expect_product(false, false);
    expect_product(false, true);
}

Test(host_fp8_blocks, adds_a_bias_to_products_by_blocks)
{
    expect_product(true, false);
    expect_product(true, true);
}
