// SPDX-License-Identifier: MIT
// The arithmetic of one element of the row-wise ops, in fp32. Compiles as C and as CUDA, so that both backends compute
// the same formulas; free of branches and calls, so that loops over it vectorise.
#ifndef GSWBENCH_ARITHMETIC_H
#define GSWBENCH_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "gswbench/format.h"

// e^x within 2e-7 relative for |x| <= 64; beyond, x is clamped to the nearest limit. So no result comes near the
// denormal numbers, which cost a hundred cycles each; e^-64 = 1.6e-28 vanishes when it is added to 1. NaN stays NaN.
// e^x = 2^n e^r with |r| <= ln 2 / 2, whose Taylor series of degree 7 is exact to 5e-9. A device has an instruction for
// 2^x; with the multiplication by log2 e its result is within (3 + |x|) 1e-7. Anything more exact would cost more than
// the memory traffic around it.
GSWBENCH_INLINE float arithmetic_exp(float x)
{
#ifdef __CUDA_ARCH__
    // Between the limits no result is denormal, so the instruction needs no scaling around it.
    float power;
    asm("max.NaN.f32 %0, %0, 0fC2800000;\n\tmin.NaN.f32 %0, %0, 0f42800000;" : "+f"(x));    // -64, 64
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
    return power;
#else
    x = x < -64.0f ? -64.0f : x;
    x = x > 64.0f ? 64.0f : x;
    // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits. ln 2 is split so that n times its
    // first part is exact.
    float    shifted = x * 1.44269504f + 12582912.0f;
    float    n       = shifted - 12582912.0f;
    float    r       = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof(power));
    float series = 1.0f / 5040;
    series       = series * r + 1.0f / 720;
    series       = series * r + 1.0f / 120;
    series       = series * r + 1.0f / 24;
    series       = series * r + 1.0f / 6;
    series       = series * r + 0.5f;
    return (series * r * r + r + 1.0f) * power;
#endif
}

GSWBENCH_INLINE float arithmetic_sigmoid(float x)
{
#ifdef __CUDA_ARCH__
    return __fdividef(1.0f, 1.0f + arithmetic_exp(-x));
#else
    return 1.0f / (1.0f + arithmetic_exp(-x));
#endif
}

// SiLU, the activation in SwiGLU, and its derivative.
GSWBENCH_INLINE float arithmetic_silu(float x)
{
    return x * arithmetic_sigmoid(x);
}
GSWBENCH_INLINE float arithmetic_silu_slope(float x)
{
    float sigmoid = arithmetic_sigmoid(x);
    return sigmoid * (1.0f + x * (1.0f - sigmoid));
}

// GELU by its tanh approximation, x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2u).
GSWBENCH_INLINE float arithmetic_gelu(float x)
{
    return x * arithmetic_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}
GSWBENCH_INLINE float arithmetic_gelu_slope(float x)
{
    float sigmoid = arithmetic_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
    return sigmoid * (1.0f + x * (1.0f - sigmoid) * (1.59576912f + 0.214064449f * x * x));
}

// Squared ReLU. The comparison lets NaN through.
GSWBENCH_INLINE float arithmetic_relu2(float x)
{
    return x < 0.0f ? 0.0f : x * x;
}
GSWBENCH_INLINE float arithmetic_relu2_slope(float x)
{
    return x < 0.0f ? 0.0f : 2.0f * x;
}

// Rotates the pair (a, b) by an angle; rope pairs element i of a head with element i + rotary/2.
GSWBENCH_INLINE void arithmetic_rotate(float *a, float *b, float cosine, float sine)
{
    float first = *a;
    *a          = first * cosine - *b * sine;
    *b          = *b * cosine + first * sine;
}

// By how much a score of that head falls a position (Press et al., "Train short, test long", ICLR 2022): head i of n, a
// power of two, 2^(-8 i / n). Of other numbers the heads past the largest power below have the steps between these.
GSWBENCH_INLINE float arithmetic_slope(int64_t head, int64_t heads)
{
    int64_t power = 1;
    for (; power <= heads / 2; power *= 2) {
    }
    return exp2f(-8.0f * (head < power ? (float)(head + 1) : (float)(head - power) + 0.5f) / (float)power);
}

// The expert of a row's choice where experts are dealt out: of so many rows as hot says, evenly among all, the first
// experts; the others go through all experts in turn.
GSWBENCH_INLINE int64_t arithmetic_deal(int64_t row, int64_t choice, int64_t top_k, int64_t experts, double hot)
{
    int64_t before = (int64_t)floor((double)row * hot), through = (int64_t)floor((double)(row + 1) * hot);
    return through > before ? choice : ((row - before) * top_k + choice) % experts;
}

// What is added to an expert's bias: what it has of the choices, and what it would have if all had the same.
GSWBENCH_INLINE float arithmetic_balance(float choices, float mean, float rate)
{
    return choices < mean ? rate : choices > mean ? -rate : 0.0f;
}

// What clipping multiplies gradients by; the small constant keeps the clipped norm below the limit after rounding. A
// norm that is no finite number gives none, and AdamW then leaves all as it was: the step can be looked at again.
GSWBENCH_INLINE float arithmetic_clip_scale(double norm, double limit)
{
    if (!isfinite((float)norm)) {
        return NAN;
    }
    return limit > 0 && norm > limit ? (float)(limit / (norm + 1e-6)) : 1.0f;
}

// The constants of AdamW in a step, the same for every element.
struct arithmetic_adamw {
    float gradient_scale;             // of clipping
    float keep;                       // 1 - learning rate * decay: decay is decoupled from the gradient
    float first_rate, second_rate;    // 1 - beta
    float beta2;
    float step_size;       // learning rate / correction of the first moment
    float inverse_root;    // 1 / sqrt(correction of the second moment)
    float epsilon;
};

// One element of AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).
GSWBENCH_INLINE void arithmetic_adamw_update(const struct arithmetic_adamw *adamw, float gradient, float *weight,
                                             float *first, float *second)
{
    float scaled      = gradient * adamw->gradient_scale;
    *first            = *first + adamw->first_rate * (scaled - *first);
    *second           = adamw->beta2 * *second + adamw->second_rate * scaled * scaled;
    float denominator = sqrtf(*second) * adamw->inverse_root + adamw->epsilon;
    *weight           = *weight * adamw->keep - adamw->step_size * *first / denominator;
}

#endif
