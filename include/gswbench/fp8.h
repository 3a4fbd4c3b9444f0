// SPDX-License-Identifier: MIT
// Conversions between fp32 and the FP8 formats, and the scales of FP8 tensors. Compiles as C and as CUDA. Device code
// cannot read format_table, so this file repeats the largest values.
//
//          sign, exponent, mantissa bits   largest   smallest   codes that are not finite
//   E4M3   1, 4, 3; bias 7                 448       2^-9       NaN 0x7f
//   E5M2   1, 5, 2; bias 15                57344     2^-16      infinity 0x7c, NaN 0x7d to 0x7f
#pragma once

#include "gswbench/scaling.h"

GSWBENCH_INLINE float fp8_largest(enum format format)
{
    return format == FORMAT_E4M3 ? 448.0f : 57344.0f;
}

GSWBENCH_INLINE float fp8_to_float(enum format format, uint8_t code)
{
    bool     is_e4m3   = format == FORMAT_E4M3;
    uint32_t magnitude = code & 0x7fu;
    // The shift places exponent and mantissa in a float. The multiplication corrects the bias and normalises
    // subnormals.
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
    // The sum's last place equals the smallest subnormal, so the addition rounds subnormal results.
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

// Scale that maps magnitude, the amax of a tensor, to the largest value of the format; 1 if there is no such scale.
GSWBENCH_INLINE float fp8_scale(enum format format, float magnitude)
{
    return scaling_renew(1.0f, fp8_largest(format), magnitude);
}

// Scale of a row: fp8_scale rounded down to a power of two.
GSWBENCH_INLINE float fp8_row_scale(enum format format, float magnitude)
{
    float    scale = fp8_scale(format, magnitude);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    bits &= 0x7f800000u;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

// E8M0 inverse scale of an MX block: the smallest power of two that brings magnitude / scale into the range of the
// format. The largest value of both formats is 1.75 times a power of two. A block of zeros gets code 0.
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

// E8M0 code of the power of two nearest to |number|.
GSWBENCH_INLINE uint8_t fp8_power_code(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    bits &= 0x7fffffffu;
    uint32_t code = bits < 0x800000u ? 0 : (bits + 0x400000u) >> 23;
    return (uint8_t)(bits > 0x7f800000u ? 0xffu : code > 254 ? 254 : code);
}

// Scale of a block: the reciprocal of its inverse scale.
GSWBENCH_INLINE float fp8_block_scale(uint8_t factor)
{
    return fp8_power((uint8_t)(254 - factor));
}
