// SPDX-License-Identifier: MIT
// Conversions between fp32 and the FP8 formats, and the scales of FP8 tensors. Compiles as C and as CUDA. Device code
// cannot read format_table, so this file repeats the largest values.
//
//          sign, exponent, mantissa bits   largest   smallest   codes that are not finite
//   E4M3   1, 4, 3; bias 7                 448       2^-9       NaN 0x7f
//   E5M2   1, 5, 2; bias 15                57344     2^-16      infinity 0x7c, NaN 0x7d to 0x7f
#pragma once

#include <float.h>
#include <math.h>

#include "gswbench/format.h"

// Scaling modes of FP8 and NVFP4 tensors. The table lists the elements of a matrix [rows, columns] that share a scale,
// and the format of the scale if it is not fp32:
//
//   SCALING_WHOLE     the tensor
//   SCALING_1X128      1 x 128
//   SCALING_128X128   128 x 128
//   SCALING_MX        1 x 32, E8M0 (MX)
//   SCALING_ROWS      a row
//   SCALING_NV         1 x 16, E4M3 (NVFP4), and the tensor
//   SCALING_NV_SQUARE 16 x 16, E4M3, and the tensor; stored like 1 x 16
//
// value = code * inverse scale. Inverse scales have cuBLASLt's layouts in memory. 1 x 128: [columns / 128, rows]. 128 x
// 128: [rows / 128, columns / 128], where each row of scales is padded to a multiple of 4. MX: a tile of 512 scales for
// each 128 rows and 128 columns, zero-padded at the matrix edge. In a tile, the scale of (row, column) is byte (row %
// 32) * 16 + (row / 32) * 4 + column / 32. NV: as MX, but with 64 columns and column / 16. ROWS: one scale after the
// other.
enum scaling { SCALING_WHOLE, SCALING_1X128, SCALING_128X128, SCALING_MX, SCALING_ROWS, SCALING_NV, SCALING_NV_SQUARE };
enum { SCALING_SIDE = 128, SCALING_BLOCK = 32, SCALING_NV_BLOCK = 16, SCALING_TILE = 512 };

GSWBENCH_INLINE bool scaling_is_nv(enum scaling scaling)
{
    return scaling == SCALING_NV || scaling == SCALING_NV_SQUARE;
}

// Returns the number of elements along k (columns) that share a scale in 1 x 128, 128 x 128, MX and NV scaling.
GSWBENCH_INLINE int64_t scaling_depth(enum scaling scaling)
{
    return scaling_is_nv(scaling) ? SCALING_NV_BLOCK : scaling == SCALING_MX ? SCALING_BLOCK : SCALING_SIDE;
}

GSWBENCH_INLINE enum format scaling_format(enum scaling scaling)
{
    return scaling_is_nv(scaling) ? FORMAT_E4M3 : scaling == SCALING_MX ? FORMAT_E8M0 : FORMAT_F32;
}

// Returns the number of blocks of 128 that cover this number of elements.
GSWBENCH_INLINE int64_t scaling_sides(int64_t elements)
{
    return (elements + SCALING_SIDE - 1) / SCALING_SIDE;
}

GSWBENCH_INLINE int64_t scaling_inverses(enum scaling scaling, int64_t rows, int64_t columns)
{
    return scaling == SCALING_WHOLE   ? 1
           : scaling == SCALING_1X128 ? scaling_sides(columns) * rows
           : scaling == SCALING_ROWS  ? rows
           : scaling == SCALING_MX    ? scaling_sides(rows) * scaling_sides(columns) * SCALING_TILE
           : scaling_is_nv(scaling)   ? scaling_sides(rows) * scaling_sides(2 * columns) * SCALING_TILE
                                      : scaling_sides(rows) * ((scaling_sides(columns) + 3) / 4 * 4);
}

// Returns the index of an element's inverse scale in the MX layout: tiles are in row-major order.
GSWBENCH_INLINE int64_t scaling_block_at(int64_t columns, int64_t row, int64_t column)
{
    int64_t tile = row / SCALING_SIDE * scaling_sides(columns) + column / SCALING_SIDE;
    return tile * SCALING_TILE + row % 32 * 16 + row % SCALING_SIDE / 32 * 4 + column % SCALING_SIDE / SCALING_BLOCK;
}

// Returns the index of an element's inverse scale.
GSWBENCH_INLINE int64_t scaling_inverse_at(enum scaling scaling, int64_t rows, int64_t columns, int64_t row,
                                           int64_t column)
{
    return scaling == SCALING_WHOLE  ? 0
           : scaling == SCALING_MX   ? scaling_block_at(columns, row, column)
           : scaling_is_nv(scaling)  ? scaling_block_at(2 * columns, row, 2 * column)
           : scaling == SCALING_ROWS ? row
           : scaling == SCALING_1X128
               ? column / SCALING_SIDE * rows + row
               : row / SCALING_SIDE * ((scaling_sides(columns) + 3) / 4 * 4) + column / SCALING_SIDE;
}

// Returns the scale that maps magnitude to target, at most FLT_MAX. If magnitude is 0, infinite or NaN, returns
// `scale`, the previous one.
GSWBENCH_INLINE float scaling_renew(float scale, float target, float magnitude)
{
    if (!(magnitude > 0.0f) || isinf(magnitude)) {
        return scale;
    }
    return fminf(target / magnitude, FLT_MAX);
}

GSWBENCH_INLINE float fp8_largest(enum format format)
{
    return format == FORMAT_E4M3 ? 448.0f : 57344.0f;
}

GSWBENCH_INLINE float fp8_to_float(enum format format, uint8_t code)
{
    bool     is_e4m3   = format == FORMAT_E4M3;
    uint32_t magnitude = code & 0x7fu;
    // The shift places exponent and mantissa in a float. The product corrects the bias and normalises subnormals.
    uint32_t bits = magnitude << (is_e4m3 ? 20 : 21);
    float    value;
    memcpy(&value, &bits, sizeof(value));
    value *= is_e4m3 ? 0x1p120f : 0x1p112f;
    if (magnitude >= (is_e4m3 ? 0x7fu : 0x7cu)) {
        value = magnitude == 0x7cu ? INFINITY : NAN;
    }
    return code & 0x80u ? -value : value;
}

// Rounds to nearest, ties to even, and saturates: values beyond the largest and infinities become the largest. NaN
// stays NaN. The code computes the normal and the subnormal result and selects one, so that compilers can vectorise it.
GSWBENCH_INLINE uint8_t fp8_from_float(enum format format, float value)
{
    int      mantissa = format == FORMAT_E4M3 ? 3 : 2, bias = format == FORMAT_E4M3 ? 7 : 15;
    int      dropped = 23 - mantissa;
    uint32_t largest = (format == FORMAT_E4M3 ? 0x7eu : 0x7bu) << dropped, bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits & 0x80000000u;
    bits &= 0x7fffffffu;
    uint32_t normal = bits + (1u << (dropped - 1)) - 1u + (bits >> dropped & 1u) - ((uint32_t)(127 - bias) << 23);
    // The last mantissa bit of `sum` is worth the smallest subnormal, so the addition rounds subnormal results.
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

// Returns the scale that maps magnitude, the amax of a tensor, to the largest value of the format. Returns 1 if
// magnitude is 0, infinite or NaN.
GSWBENCH_INLINE float fp8_scale(enum format format, float magnitude)
{
    return scaling_renew(1.0f, fp8_largest(format), magnitude);
}

// Returns the scale of a row (SCALING_ROWS): fp8_scale rounded down to a power of two.
GSWBENCH_INLINE float fp8_row_scale(enum format format, float magnitude)
{
    float    scale = fp8_scale(format, magnitude);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    bits &= 0x7f800000u;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

// Returns the E8M0 inverse scale of an MX block with this amax (magnitude): the smallest power of two for which
// magnitude / power is at most the format's largest value, 1.75 times a power of two. A block of zeros gets code 0.
GSWBENCH_INLINE uint8_t fp8_block_factor(enum format format, float magnitude)
{
    uint32_t bits;
    memcpy(&bits, &magnitude, sizeof(bits));
    int power = (int)(bits >> 23) - (format == FORMAT_E4M3 ? 8 : 15) + ((bits & 0x7fffffu) > 0x600000u);
    return (uint8_t)(power > 0 ? power : 0);
}

// Returns 2^(code - 127); NaN for code 255.
GSWBENCH_INLINE float fp8_power(uint8_t code)
{
    uint32_t bits = code > 0 ? (uint32_t)code << 23 : 0x400000u;
    float    power;
    memcpy(&power, &bits, sizeof(power));
    return code == 0xffu ? NAN : power;
}

// Returns the E8M0 code of the power of two nearest to |number|.
GSWBENCH_INLINE uint8_t fp8_power_code(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    bits &= 0x7fffffffu;
    uint32_t code = bits < 0x800000u ? 0 : (bits + 0x400000u) >> 23;
    return (uint8_t)(bits > 0x7f800000u ? 0xffu : code > 254 ? 254 : code);
}

// Returns the scale of a block: the reciprocal of its inverse scale.
GSWBENCH_INLINE float fp8_block_scale(uint8_t factor)
{
    return fp8_power((uint8_t)(254 - factor));
}
