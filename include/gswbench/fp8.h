// SPDX-License-Identifier: MIT
// The two FP8 formats, and the scales that bring values into their range. Compiles as C and as CUDA, like dtype.h.
//
//          sign, exponent, mantissa bits   largest   smallest   codes of no number
//   E4M3   1, 4, 3; bias 7                 448       2^-9       NaN 0x7f
//   E5M2   1, 5, 2; bias 15                57344     2^-16      infinity 0x7c, NaN 0x7d to 0x7f
#ifndef GSWBENCH_FP8_H
#define GSWBENCH_FP8_H

#include <float.h>
#include <math.h>

#include "gswbench/dtype.h"

// What shares a scale in a matrix [rows, columns]: all of it, each run of 128 in a row, or each square of 128 x 128.
// Factors lie as devices read them: those of runs [runs of a row, rows], those of squares [squares below each other,
// squares beside each other], where so many follow in a row that it is a multiple of 4, the last ones unused.
enum fp8_scaling { FP8_SCALING_WHOLE, FP8_SCALING_RUNS, FP8_SCALING_SQUARES };
enum { FP8_SIDE = 128 };

// Runs of a row, or squares beside or below each other.
GSWBENCH_INLINE int64_t fp8_sides(int64_t elements)
{
    return (elements + FP8_SIDE - 1) / FP8_SIDE;
}

GSWBENCH_INLINE int64_t fp8_factors(enum fp8_scaling scaling, int64_t rows, int64_t columns)
{
    return scaling == FP8_SCALING_WHOLE  ? 1
           : scaling == FP8_SCALING_RUNS ? fp8_sides(columns) * rows
                                         : fp8_sides(rows) * ((fp8_sides(columns) + 3) / 4 * 4);
}

// Where the factor of an element is among them.
GSWBENCH_INLINE int64_t fp8_factor_at(enum fp8_scaling scaling, int64_t rows, int64_t columns, int64_t row,
                                      int64_t column)
{
    return scaling == FP8_SCALING_WHOLE  ? 0
           : scaling == FP8_SCALING_RUNS ? column / FP8_SIDE * rows + row
                                         : row / FP8_SIDE * ((fp8_sides(columns) + 3) / 4 * 4) + column / FP8_SIDE;
}

GSWBENCH_INLINE float fp8_largest(enum dtype format)
{
    return format == DTYPE_E4M3 ? 448.0f : 57344.0f;
}

GSWBENCH_INLINE float fp8_to_float(enum dtype format, uint8_t code)
{
    bool     is_e4m3   = format == DTYPE_E4M3;
    uint32_t magnitude = code & 0x7fu;
    // Exponent and mantissa lie in a float as they are; the product corrects the bias, and normalises subnormals.
    uint32_t bits = magnitude << (is_e4m3 ? 20 : 21);
    float    value;
    memcpy(&value, &bits, sizeof(value));
    value *= is_e4m3 ? 0x1p120f : 0x1p112f;
    if (magnitude >= (is_e4m3 ? 0x7fu : 0x7cu)) {
        value = magnitude == 0x7cu ? INFINITY : NAN;
    }
    return code & 0x80u ? -value : value;
}

// Round to nearest, ties to even. What is too large, infinity too, becomes the largest number; NaN stays NaN. Both ways
// to round are computed and one is taken, so that a compiler can do many values at once.
GSWBENCH_INLINE uint8_t fp8_from_float(enum dtype format, float value)
{
    int      mantissa = format == DTYPE_E4M3 ? 3 : 2, bias = format == DTYPE_E4M3 ? 7 : 15;
    int      dropped = 23 - mantissa;
    uint32_t largest = (format == DTYPE_E4M3 ? 0x7eu : 0x7bu) << dropped, bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits & 0x80000000u;
    bits &= 0x7fffffffu;
    uint32_t normal = bits + (1u << (dropped - 1)) - 1u + (bits >> dropped & 1u) - ((uint32_t)(127 - bias) << 23);
    // The sum's last place is the format's smallest number: the addition itself rounds.
    uint32_t one_bits = (uint32_t)(128 - bias + dropped) << 23, sum_bits;
    float    one, sum;
    memcpy(&one, &one_bits, sizeof(one));
    memcpy(&value, &bits, sizeof(value));
    sum = one + value;
    memcpy(&sum_bits, &sum, sizeof(sum_bits));
    uint32_t code = bits < (uint32_t)(128 - bias) << 23 ? (sum_bits - one_bits) << dropped : normal;
    code          = code > largest ? largest : code;
    code          = bits > 0x7f800000u ? 0x7fu << dropped : code;
    return (uint8_t)((sign >> (mantissa + 1) | code) >> dropped);
}

// What a tensor is multiplied by, so that its largest magnitude becomes target. The scale stays as it is where there is
// no such number.
GSWBENCH_INLINE float fp8_rescale(float scale, float target, float magnitude)
{
    if (!(magnitude > 0.0f) || isinf(magnitude)) {
        return scale;
    }
    return fminf(target / magnitude, FLT_MAX);
}

// ... so that the tensor just fits; 1 where there is no such number.
GSWBENCH_INLINE float fp8_scale(enum dtype format, float magnitude)
{
    return fp8_rescale(1.0f, fp8_largest(format), magnitude);
}

#endif
