// SPDX-License-Identifier: MIT
// Converts F16 (IEEE 754 binary16) weights of other programs: 5 exponent bits, 10 mantissa bits.
#include <math.h>

#include "internal.h"

enum { MANTISSA_BITS = 10, EXPONENT_ONES = 31, BIAS = 15 };

float half_to_float(uint16_t half)
{
    int   exponent = half >> MANTISSA_BITS & EXPONENT_ONES, mantissa = half & ((1 << MANTISSA_BITS) - 1);
    float leading = exponent == 0 ? 0 : 1 << MANTISSA_BITS;    // subnormals have no leading bit
    float size    = ldexpf(leading + (float)mantissa, (exponent == 0 ? 1 : exponent) - BIAS - MANTISSA_BITS);
    if (exponent == EXPONENT_ONES) {
        size = mantissa == 0 ? INFINITY : NAN;
    }
    return half >> 15 != 0 ? -size : size;
}

bool half_is_finite(const void *data, int64_t bytes)
{
    const uint16_t *halves = data;
    uint16_t        carry  = 0;
    for (int64_t i = 0; i < bytes / (int64_t)sizeof(*halves); i++) {
        carry =
            (uint16_t)(carry | ((halves[i] & 0x7c00u) + 0x0400u));    // an all-ones exponent carries into the sign bit
    }
    return carry < 0x8000u;
}
