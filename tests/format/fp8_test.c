// SPDX-License-Identifier: MIT
// FP8 and NVFP4 conversions: codes against tables computed from their definition, the scale of a tensor, and blocks
// that ml_dtypes has converted (tests/reference/fp4_copy_test.py --vectors).
#include <criterion/criterion.h>

#include "gswbench/fp4.h"
#include "gswbench/fp8.h"

enum { CODES = 128 };    // of one sign

struct encoding {
    enum format format;
    int         mantissa_bits, bias;
    int         numbers;    // finite codes of one sign, from code 0
};
static const struct encoding encodings[] = {{FORMAT_E4M3, 3, 7, 0x7f}, {FORMAT_E5M2, 2, 15, 0x7c}};
enum { FORMATS = sizeof(encodings) / sizeof(encodings[0]) };

// Value of a finite code. The codes after the last finite one are the format's special codes.
static double value_of(const struct encoding *encoding, int code)
{
    int exponent = code >> encoding->mantissa_bits, mantissa = code & ((1 << encoding->mantissa_bits) - 1);
    int implied = exponent == 0 ? 0 : 1 << encoding->mantissa_bits;
    return ldexp(implied + mantissa, (exponent == 0 ? 1 : exponent) - encoding->bias - encoding->mantissa_bits);
}

Test(fp8, gives_every_code_the_value_of_its_definition)
{
    cr_expect_eq(value_of(&encodings[0], 0x7e), 448.0);
    cr_expect_eq(value_of(&encodings[0], 1), 1.0 / 512);
    cr_expect_eq(value_of(&encodings[1], 0x7b), 57344.0);
    cr_expect_eq(value_of(&encodings[1], 1), 1.0 / 65536);
    for (int f = 0; f < FORMATS; f++) {
        const struct encoding *encoding = &encodings[f];
        for (int code = 0; code < encoding->numbers; code++) {
            float plus = fp8_to_float(encoding->format, (uint8_t)code);
            float less = fp8_to_float(encoding->format, (uint8_t)(code + CODES));
            cr_assert_eq((double)plus, value_of(encoding, code), "%s %02x", format_name(encoding->format),
                         (unsigned)code);
            cr_assert(less == -plus && signbit(less) && !signbit(plus), "%s %02x", format_name(encoding->format),
                      (unsigned)code);
        }
    }
}

Test(fp8, has_infinity_in_e5m2_only_and_nan_in_both)
{
    cr_expect(isnan(fp8_to_float(FORMAT_E4M3, 0x7f)) && isnan(fp8_to_float(FORMAT_E4M3, 0xff)));
    cr_expect_eq(fp8_to_float(FORMAT_E5M2, 0x7c), INFINITY);
    cr_expect_eq(fp8_to_float(FORMAT_E5M2, 0xfc), -INFINITY);
    for (int code = 0x7d; code < CODES; code++) {
        cr_expect(isnan(fp8_to_float(FORMAT_E5M2, (uint8_t)code)) &&
                  isnan(fp8_to_float(FORMAT_E5M2, (uint8_t)(code + CODES))));
    }
}

static void expect_code(const struct encoding *encoding, float value, int code)
{
    cr_assert_eq(fp8_from_float(encoding->format, value), code, "%s of %.9g is %02x, not %02x",
                 format_name(encoding->format), (double)value, fp8_from_float(encoding->format, value), (unsigned)code);
    cr_assert_eq(fp8_from_float(encoding->format, -value), code + CODES, "%s of %.9g", format_name(encoding->format),
                 (double)-value);
}

Test(fp8, rounds_to_nearest_and_ties_to_even_at_every_boundary)
{
    for (int f = 0; f < FORMATS; f++) {
        const struct encoding *encoding = &encodings[f];
        for (int code = 0; code + 1 < encoding->numbers; code++) {
            float middle = (float)((value_of(encoding, code) + value_of(encoding, code + 1)) / 2);
            expect_code(encoding, (float)value_of(encoding, code), code);
            expect_code(encoding, nextafterf(middle, 0), code);
            expect_code(encoding, middle, code + (code & 1));
            expect_code(encoding, nextafterf(middle, INFINITY), code + 1);
        }
    }
}

// Codes are exact at the boundaries, so monotonic rounding makes them exact in between.
Test(fp8, rounds_no_value_below_a_smaller_one)
{
    for (int f = 0; f < FORMATS; f++) {
        int before = 0;
        for (uint32_t bits = 0; bits <= 0x7f800000u; bits += 997) {
            float value;
            memcpy(&value, &bits, sizeof(value));
            int code = fp8_from_float(encodings[f].format, value);
            cr_assert_geq(code, before, "%s of %.9g is %02x", format_name(encodings[f].format), (double)value,
                          (unsigned)code);
            before = code;
        }
        cr_expect_eq(before, encodings[f].numbers - 1);
    }
}

Test(fp8, saturates_what_is_too_large_and_keeps_nan)
{
    for (int f = 0; f < FORMATS; f++) {
        const struct encoding *encoding = &encodings[f];
        int                    largest  = encoding->numbers - 1;
        expect_code(encoding, (float)value_of(encoding, largest), largest);
        expect_code(encoding, nextafterf((float)value_of(encoding, largest), INFINITY), largest);
        expect_code(encoding, (float)value_of(encoding, largest + 1), largest);
        expect_code(encoding, FLT_MAX, largest);
        expect_code(encoding, INFINITY, largest);
        expect_code(encoding, FLT_TRUE_MIN, 0);
        expect_code(encoding, NAN, 0x7f);
        uint32_t least_nan = 0x7f800001u;
        float    value;
        memcpy(&value, &least_nan, sizeof(value));
        expect_code(encoding, value, 0x7f);
    }
}

Test(fp8, scales_the_largest_magnitude_to_the_largest_number)
{
    cr_expect_eq(fp8_scale(FORMAT_E4M3, 448), 1.0f);
    cr_expect_eq(fp8_scale(FORMAT_E4M3, 3.5f), 128.0f);
    cr_expect_eq(fp8_scale(FORMAT_E4M3, 3), 448.0f / 3);
    cr_expect_eq(fp8_scale(FORMAT_E5M2, 7), 8192.0f);
    cr_expect_eq(fp8_scale(FORMAT_E5M2, 114688), 0.5f);
}

Test(fp8, does_not_scale_what_has_no_scale)
{
    cr_expect_eq(fp8_scale(FORMAT_E4M3, 0), 1.0f);
    cr_expect_eq(fp8_scale(FORMAT_E5M2, INFINITY), 1.0f);
    cr_expect_eq(fp8_scale(FORMAT_E4M3, 1e-40f), FLT_MAX);
}

static const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]), BLOCK = SCALING_NV_BLOCK };

Test(fp4, gives_every_code_the_value_of_its_definition)
{
    for (uint8_t code = 0; code < NUMBERS; code++) {
        cr_expect_eq(fp4_to_float(code), numbers[code]);
        cr_expect_eq(fp4_to_float(code | 8), -numbers[code]);
        cr_expect(signbit(fp4_to_float(code | 8)));
    }
}

Test(fp4, rounds_to_nearest_and_ties_to_even_at_every_boundary)
{
    for (uint8_t code = 0; code + 1 < NUMBERS; code++) {
        float middle = (numbers[code] + numbers[code + 1]) / 2;
        cr_expect_eq(fp4_from_float(numbers[code]), code);
        cr_expect_eq(fp4_from_float(nextafterf(middle, 0)), code);
        cr_expect_eq(fp4_from_float(middle), code + (code & 1), "%g", (double)middle);
        cr_expect_eq(fp4_from_float(nextafterf(middle, 9)), code + 1);
        cr_expect_eq(fp4_from_float(-middle), (code + (code & 1)) | 8, "%g", (double)middle);
    }
    cr_expect_eq(fp4_from_float(6), 7);
    cr_expect_eq(fp4_from_float(1e30f), 7);
    cr_expect_eq(fp4_from_float(-INFINITY), 15);
    cr_expect_eq(fp4_from_float(-0.0f), 8);
    cr_expect_eq(fp4_from_float(NAN), 7);
}

// Stochastic rounding takes one of 256 draws. If a value is k/256 of the way from its lower to its upper neighbour,
// exactly k draws must round up.
Test(fp4, rounds_up_with_the_share_of_draws_that_the_distance_to_the_lower_neighbour_has)
{
    for (uint8_t code = 0; code + 1 < NUMBERS; code++) {
        for (int part = 0; part < 256; part += 5) {
            float value = numbers[code] + (numbers[code + 1] - numbers[code]) * (float)part / 256;
            int   up    = 0;
            for (uint32_t draw = 0; draw < 256; draw++) {
                uint8_t found = fp4_draw(-value, draw);
                cr_assert(found == (code | 8) || found == ((code + 1) | 8), "%g, %u: %d", (double)value, draw, found);
                up += found == ((code + 1) | 8);
            }
            cr_assert_eq(up, part, "%g: %d, not %d", (double)value, up, part);
        }
    }
    cr_expect_eq(fp4_draw(6, 0), 7);
    cr_expect_eq(fp4_draw(7e9f, 255), 7);
    cr_expect_eq(fp4_draw(NAN, 3), 7);
}

Test(fp4, maps_the_largest_value_of_a_tensor_to_the_largest_code_and_scale)
{
    cr_expect_eq(fp4_tensor_scale(2688), 1);
    cr_expect_eq(fp4_tensor_scale(10.5f), 256);
    cr_expect_eq(fp4_tensor_scale(0), 1);
    cr_expect_eq(fp4_tensor_scale(INFINITY), 1);
    cr_expect_eq(fp4_block_factor(10.5f, 256), 0x7e);
    cr_expect_eq(fp4_block_factor(0, 256), 0);
    cr_expect_eq(fp4_block_scale(0x7e, 256), 256.0f / 448);
    cr_expect_eq(fp4_block_scale(0, 256), FLT_MAX);
}

// The transform of each unit vector must be a row of S H / 4, and the dot product of two vectors must stay the same.
Test(fp4, transforms_by_an_orthogonal_matrix_with_the_published_signs)
{
    static const int signs[BLOCK] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
    for (int row = 0; row < BLOCK; row++) {
        float unit[BLOCK] = {0};
        unit[row]         = 1;
        fp4_transform(unit);
        for (int column = 0; column < BLOCK; column++) {
            int minus = __builtin_popcount((unsigned)(row & column)) % 2;
            cr_assert_eq(unit[column], (float)signs[row] * (minus ? -0.25f : 0.25f), "%d, %d", row, column);
        }
    }
    float one[BLOCK], other[BLOCK], before = 0, after = 0;
    for (int i = 0; i < BLOCK; i++) {
        one[i]   = (float)(i % 5 - 2);
        other[i] = (float)(i % 3 + 1);
        before += one[i] * other[i];
    }
    fp4_transform(one);
    fp4_transform(other);
    for (int i = 0; i < BLOCK; i++) {
        after += one[i] * other[i];
    }
    cr_expect_eq(before, after);
}

Test(fp4, lays_out_scales_in_tiles_of_128_rows_and_64_columns)
{
    cr_expect_eq(scaling_inverses(SCALING_NV, 128, 64), 512);
    cr_expect_eq(scaling_inverses(SCALING_NV, 129, 80), 4 * 512);
    cr_expect_eq(scaling_inverses(SCALING_NV_SQUARE, 32, 128), 2 * 512);
    cr_expect_eq(scaling_inverse_at(SCALING_NV, 256, 192, 0, 16), 1);
    cr_expect_eq(scaling_inverse_at(SCALING_NV, 256, 192, 1, 0), 16);
    cr_expect_eq(scaling_inverse_at(SCALING_NV, 256, 192, 32, 15), 4);
    cr_expect_eq(scaling_inverse_at(SCALING_NV, 256, 192, 0, 64), 512);
    cr_expect_eq(scaling_inverse_at(SCALING_NV, 256, 192, 128 + 33, 128 + 48), 5 * 512 + 16 + 4 + 3);
    cr_expect_eq(scaling_inverse_at(SCALING_NV_SQUARE, 256, 192, 161, 176), 5 * 512 + 16 + 4 + 3);
}
