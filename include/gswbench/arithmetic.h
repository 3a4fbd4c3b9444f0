// SPDX-License-Identifier: MIT
// Defines scalar fp32 formulas of the elementwise and row-wise ops. Compiles as C and as CUDA, so the backends host and
// cuda compute the same formulas. Most functions are free of branches and calls, so that loops over them vectorise.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "gswbench/format.h"

// Returns e^x, with x clamped to -64 .. 64. The relative error is 2e-7 on the host and (3 + |x|) 1e-7 on devices. The
// clamp avoids subnormals, which cost a hundred cycles each; e^-64 = 1.6e-28 vanishes when added to 1. NaN stays NaN.
//
// Host: e^x = 2^n e^r with |r| <= ln 2 / 2, and a Taylor series of degree 7 for e^r, exact to 5e-9. Device: the
// instruction for 2^x after a multiplication by log2 e. A more exact e^x would be slower than the memory traffic.
GSWBENCH_INLINE float arithmetic_exp(float x)
{
#ifdef __CUDA_ARCH__
    // Results in the clamped range are never subnormal, so ftz is safe.
    float power;
    asm("max.NaN.f32 %0, %0, 0fC2800000;\n\tmin.NaN.f32 %0, %0, 0f42800000;" : "+f"(x));    // clamp to -64 and 64
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
    return power;
#else
    x = x < -64.0f ? -64.0f : x;
    x = x > 64.0f ? 64.0f : x;
    // Adding 1.5 * 2^23 rounds x log2 e to the integer n and leaves n in the low bits of `shifted`. ln 2 is split in
    // two so that n times the first part is exact.
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

// SiLU, the activation of SwiGLU, and its derivative.
GSWBENCH_INLINE float arithmetic_silu(float x)
{
    return x * arithmetic_sigmoid(x);
}
GSWBENCH_INLINE float arithmetic_silu_slope(float x)
{
    float sigmoid = arithmetic_sigmoid(x);
    return sigmoid * (1.0f + x * (1.0f - sigmoid));
}

// GELU, tanh approximation: x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), which equals x sigmoid(2u).
GSWBENCH_INLINE float arithmetic_gelu(float x)
{
    return x * arithmetic_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}
GSWBENCH_INLINE float arithmetic_gelu_slope(float x)
{
    float sigmoid = arithmetic_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
    return sigmoid * (1.0f + x * (1.0f - sigmoid) * (1.59576912f + 0.214064449f * x * x));
}

// Squared ReLU. The comparison passes NaN through.
GSWBENCH_INLINE float arithmetic_relu2(float x)
{
    return x < 0.0f ? 0.0f : x * x;
}
GSWBENCH_INLINE float arithmetic_relu2_slope(float x)
{
    return x < 0.0f ? 0.0f : 2.0f * x;
}

// Rotates the pair (a, b). RoPE pairs element i of a head with element i + r / 2, where r is the number of rotated
// elements.
GSWBENCH_INLINE void arithmetic_rotate(float *a, float *b, float cosine, float sine)
{
    float first = *a;
    *a          = first * cosine - *b * sine;
    *b          = *b * cosine + first * sine;
}

// Returns the ALiBi slope of a head: the decrease of its scores per position between query and key (Press et al.,
// "Train short, test long", ICLR 2022). If the number of heads n is a power of two, head i = 1 .. n has the slope 2^(-8
// i / n). Otherwise let p be the largest power of two below n. The first p heads have the slopes of p heads. The others
// have the slopes 2^(-8 i / p) for i = 1/2, 3/2, ...
GSWBENCH_INLINE float arithmetic_slope(int64_t head, int64_t heads)
{
    int64_t power = 1;
    for (; power <= heads / 2; power *= 2) {
    }
    return exp2f(-8.0f * (head < power ? (float)(head + 1) : (float)(head - power) + 0.5f) / (float)power);
}

// Assigns tokens to experts without a router: returns the expert for one of the top_k choices of a token. row: index of
// the token; choice: 0 .. top_k - 1. A fraction `hot` of the tokens, evenly spaced, gets experts 0 .. top_k - 1. The
// other tokens get all experts, round-robin.
GSWBENCH_INLINE int64_t arithmetic_assign(int64_t row, int64_t choice, int64_t top_k, int64_t experts, double hot)
{
    int64_t before = (int64_t)floor((double)row * hot), through = (int64_t)floor((double)(row + 1) * hot);
    return through > before ? choice : ((row - before) * top_k + choice) % experts;
}

// Returns the change of an expert's router bias: +rate if it was chosen less often than the mean over the experts,
// -rate if more often. choices: number of tokens that chose the expert.
GSWBENCH_INLINE float arithmetic_balance(float choices, float mean, float rate)
{
    return choices < mean ? rate : choices > mean ? -rate : 0.0f;
}

// For gradient clipping: returns the factor that reduces the global gradient norm to the limit (0: no clipping). The
// 1e-6 keeps the clipped norm below the limit after rounding. Returns NaN if the norm is not finite. The optimizer then
// leaves the weights unchanged, so that they can be examined.
GSWBENCH_INLINE float arithmetic_clip_scale(double norm, double limit)
{
    if (!isfinite((float)norm)) {
        return NAN;
    }
    return limit > 0 && norm > limit ? (float)(limit / (norm + 1e-6)) : 1.0f;
}

// Constants of one AdamW step.
struct arithmetic_adamw {
    float gradient_scale;             // from gradient clipping
    float keep;                       // 1 - learning rate * decay: weight decay is decoupled from the gradient
    float first_rate, second_rate;    // 1 - beta1, 1 - beta2
    float beta2;
    float step_size;       // learning rate / bias correction of the first moment
    float inverse_root;    // 1 / sqrt(bias correction of the second moment)
    float epsilon;
};

// Updates one element by AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).
GSWBENCH_INLINE void arithmetic_adamw_update(const struct arithmetic_adamw *adamw, float gradient, float *weight,
                                             float *first, float *second)
{
    float scaled      = gradient * adamw->gradient_scale;
    *first            = *first + adamw->first_rate * (scaled - *first);
    *second           = adamw->beta2 * *second + adamw->second_rate * scaled * scaled;
    float denominator = sqrtf(*second) * adamw->inverse_root + adamw->epsilon;
    *weight           = *weight * adamw->keep - adamw->step_size * *first / denominator;
}

// Updates Muon's Nesterov momentum of one element, the moving average of its gradient. Returns the average that one
// more step with the same gradient would give.
GSWBENCH_INLINE float arithmetic_momentum(float gradient, float decay, float *momentum)
{
    *momentum += (1.0f - decay) * (gradient - *momentum);
    return gradient + decay * (*momentum - gradient);
}

// Returns 1 / Frobenius norm of a matrix, given the sum of its squared elements.
GSWBENCH_INLINE float arithmetic_normal_factor(float squares)
{
    return 1.0f / fmaxf(sqrtf(squares), 1e-15f);
}
