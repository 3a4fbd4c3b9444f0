// SPDX-License-Identifier: MIT
// Properties of every number format, as specified.
#include "gswbench/format.h"

#include <math.h>

#include <criterion/criterion.h>

#include "gswbench/fp8.h"

enum { COUNTS = 5 };
static const int64_t counts[COUNTS] = {0, 1, 2, 3, 33};

struct facts {
    const char *name;
    int         bits, exponent_bits, mantissa_bits;
    double      smallest, largest;
    int         block;
    enum format scale;    // format of the scale of a block
    int         levels;
    enum rate   rate;
    int64_t     bytes[COUNTS];    // bytes[i]: bytes of counts[i] elements
};

// clang-format off
static const struct facts facts[] = {
    [FORMAT_F32]   = {"f32", 32, 8, 23, 1.401298464324817e-45, 3.4028234663852886e38, 0, 0, 0, RATE_FP32,
                      {0, 4, 8, 12, 132}},
    [FORMAT_BF16]  = {"bf16", 16, 8, 7, 9.183549615799121e-41, 3.3895313892515355e38, 0, 0, 0, RATE_BF16,
                      {0, 2, 4, 6, 66}},
    [FORMAT_I32]   = {"i32", 32, 0, 31, 1, 2147483647, 0, 0, 0, RATE_NONE, {0, 4, 8, 12, 132}},
    [FORMAT_E4M3]  = {"e4m3", 8, 4, 3, 0.001953125, 448, 0, 0, 0, RATE_FP8, {0, 1, 2, 3, 33}},
    [FORMAT_E5M2]  = {"e5m2", 8, 5, 2, 0.0000152587890625, 57344, 0, 0, 0, RATE_FP8, {0, 1, 2, 3, 33}},
    [FORMAT_E2M1]  = {"e2m1", 4, 2, 1, 0.5, 6, 0, 0, 0, RATE_FP4, {0, 1, 1, 2, 17}},
    [FORMAT_E8M0]  = {"e8m0", 8, 8, 0, 5.877471754111438e-39, 1.7014118346046923e38, 0, 0, 0, RATE_NONE,
                      {0, 1, 2, 3, 33}},
    [FORMAT_MXFP8] = {"mxfp8", 8, 4, 3, 0.001953125, 448, 32, FORMAT_E8M0, 1, RATE_FP8,
                      {0, 1, 2, 3, 33}},
    [FORMAT_NVFP4] = {"nvfp4", 4, 2, 1, 0.5, 6, 16, FORMAT_E4M3, 2, RATE_FP4,
                      {0, 1, 1, 2, 17}},
};
// clang-format on
enum { FACTS = sizeof(facts) / sizeof(facts[0]) };

// The numbers of exponent and mantissa bits give the range. The smallest value is subnormal. At the largest exponent,
// either no code is finite (IEEE 754), or all codes except one are, or all are.
Test(format, has_the_range_of_its_bits)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        const struct format_row *row = &format_table[i];
        if (row->exponent_bits == 0 || row->mantissa_bits == 0) {
            continue;
        }
        int    bias = (1 << (row->exponent_bits - 1)) - 1, m = row->mantissa_bits;
        double ends[] = {ldexp(2 - ldexp(1, -m), bias), ldexp(2 - ldexp(1, 1 - m), bias + 1),
                         ldexp(2 - ldexp(1, -m), bias + 1)};
        cr_expect_eq(row->bits, 1 + row->exponent_bits + m, "%s", row->name);
        cr_expect_eq(row->smallest, ldexp(1, 1 - bias - m), "%s begins at %.17g", row->name, row->smallest);
        cr_expect(row->largest == ends[0] || row->largest == ends[1] || row->largest == ends[2], "%s ends at %.17g",
                  row->name, row->largest);
        cr_expect_neq(row->rate, RATE_NONE, "%s", row->name);
    }
}

Test(format, has_the_numbers_that_its_specification_states)
{
    for (int i = 0; i < FACTS; i++) {
        const struct format_row *row = &format_table[i];
        const struct facts      *its = &facts[i];
        cr_assert_not_null(row->name, "format %d has no row", i);
        cr_expect_str_eq(format_name((enum format)i), its->name);
        cr_expect_eq(row->bits, its->bits, "%s has %d bits", its->name, row->bits);
        cr_expect_eq(row->exponent_bits, its->exponent_bits, "%s", its->name);
        cr_expect_eq(row->mantissa_bits, its->mantissa_bits, "%s", its->name);
        cr_expect_eq(row->smallest, its->smallest, "%s begins at %.17g", its->name, row->smallest);
        cr_expect_eq(row->largest, its->largest, "%s ends at %.17g", its->name, row->largest);
        cr_expect_eq(row->rate, its->rate, "%s", its->name);
    }
}

Test(format, has_the_scales_that_its_specification_states)
{
    for (int i = 0; i < FACTS; i++) {
        const struct format_row *row = &format_table[i];
        cr_expect_eq(row->block, facts[i].block, "%s scales %d together", row->name, row->block);
        cr_expect_eq(row->levels, facts[i].levels, "%s", row->name);
        if (row->block > 0) {
            cr_expect_eq(row->scale, facts[i].scale, "%s", row->name);
        }
    }
}

Test(format, packs_elements_and_rounds_half_a_byte_up)
{
    for (int i = 0; i < FACTS; i++) {
        for (int c = 0; c < COUNTS; c++) {
            int64_t bytes = format_bytes((enum format)i, counts[c]);
            cr_expect_eq(bytes, facts[i].bytes[c], "%d in %s take %d bytes", (int)counts[c], facts[i].name, (int)bytes);
        }
    }
}

Test(format, counts_the_elements_that_fit)
{
    cr_expect_eq(format_elements(FORMAT_F32, 131), 32);
    cr_expect_eq(format_elements(FORMAT_BF16, 132), 66);
    cr_expect_eq(format_elements(FORMAT_E5M2, 3), 3);
    cr_expect_eq(format_elements(FORMAT_NVFP4, 3), 6);
}

Test(format, finds_elements_that_begin_with_a_byte)
{
    cr_expect_eq(format_offset(FORMAT_F32, 3), 12);
    cr_expect_eq(format_offset(FORMAT_BF16, 5), 10);
    cr_expect_eq(format_offset(FORMAT_E4M3, 7), 7);
    cr_expect_eq(format_offset(FORMAT_E2M1, 6), 3);
}

Test(format, does_not_find_an_element_that_begins_within_a_byte, .exit_code = 1)
{
    format_offset(FORMAT_E2M1, 7);
}

Test(format, is_low_precision_below_sixteen_bits)
{
    for (int i = 0; i < FACTS; i++) {
        cr_expect_eq(format_is_low_precision((enum format)i), i >= FORMAT_E4M3, "%s", format_name((enum format)i));
    }
}

// The scale is the smallest power of two that brings the magnitude to at most 448 (57344 for E5M2). Exactly that limit
// does not saturate.
Test(format, has_factors_of_blocks_that_saturate_nothing_and_waste_no_power)
{
    cr_expect_eq(scaling_depth(SCALING_MX), format_table[FORMAT_MXFP8].block);
    cr_expect_eq(scaling_format(SCALING_MX), format_table[FORMAT_MXFP8].scale);
    cr_expect_eq(fp8_block_factor(FORMAT_E4M3, 448), 127);
    cr_expect_eq(fp8_block_factor(FORMAT_E4M3, 450), 128);
    cr_expect_eq(fp8_block_factor(FORMAT_E4M3, 1), 119);
    cr_expect_eq(fp8_block_factor(FORMAT_E5M2, 57344), 127);
    cr_expect_eq(fp8_block_factor(FORMAT_E5M2, 57600), 128);
    cr_expect_eq(fp8_block_factor(FORMAT_E4M3, 0), 0);
    for (int exponent = -118; exponent < 128; exponent++) {
        for (int eighths = 8; eighths < 16; eighths++) {
            float   magnitude = ldexpf((float)eighths / 8, exponent);
            uint8_t factor    = fp8_block_factor(FORMAT_E4M3, magnitude);
            float   scaled    = magnitude * fp8_block_scale(factor);
            cr_expect(scaled > 224 && scaled <= 448, "%g: %g", (double)magnitude, (double)scaled);
            cr_expect_eq(scaled * fp8_power(factor), magnitude);
        }
    }
}

// Every code is a power of two except the last, which is NaN.
Test(format, has_every_power_of_e8m0_and_one_code_that_is_no_number)
{
    for (int code = 0; code < 255; code++) {
        cr_expect_eq((double)fp8_power((uint8_t)code), ldexp(1, code - 127), "%d", code);
        cr_expect_eq(fp8_power_code(fp8_power((uint8_t)code)), code);
        cr_expect_eq(fp8_power((uint8_t)code) * fp8_block_scale((uint8_t)code), 1);
    }
    cr_expect(isnan(fp8_power(0xff)));
    cr_expect(isnan(fp8_block_scale(0xff)));
    cr_expect_eq(fp8_power_code(NAN), 0xff);
    cr_expect_eq(fp8_power_code(INFINITY), 254);
}

// Scales are stored in row-major tiles of 128 rows x 4 blocks. Within a tile, rows r, r + 32, r + 64 and r + 96 are
// adjacent.
Test(format, lays_factors_of_blocks_as_devices_read_them)
{
    const int64_t rows = 130, columns = 160;
    cr_expect_eq(scaling_inverses(SCALING_MX, rows, columns), 4 * 512);
    cr_expect_eq(scaling_block_at(columns, 0, 31), 0);
    cr_expect_eq(scaling_block_at(columns, 0, 32), 1);
    cr_expect_eq(scaling_block_at(columns, 32, 0), 4);
    cr_expect_eq(scaling_block_at(columns, 1, 0), 16);
    cr_expect_eq(scaling_block_at(columns, 127, 127), 511);
    cr_expect_eq(scaling_block_at(columns, 0, 128), 512);
    cr_expect_eq(scaling_block_at(columns, 129, 128), 3 * 512 + 16);
}

// Device code cannot read the format table, so fp8.h repeats both formats as code.
Test(format, says_of_e4m3_and_e5m2_what_their_codes_do)
{
    const enum format pair[] = {FORMAT_E4M3, FORMAT_E5M2};
    for (int i = 0; i < 2; i++) {
        const struct format_row *row = &format_table[pair[i]];
        cr_expect_eq((double)fp8_largest(pair[i]), row->largest);
        cr_expect_eq((double)fp8_to_float(pair[i], 1), row->smallest);
        cr_expect_eq((double)fp8_to_float(pair[i], fp8_from_float(pair[i], INFINITY)), row->largest);
    }
}
