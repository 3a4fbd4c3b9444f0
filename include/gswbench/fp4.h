// SPDX-License-Identifier: MIT
// Conversions between fp32 and NVFP4: E2M1 codes, an E4M3 scale for each block of 16 and an fp32 scale for the tensor;
// and the Hadamard transform that spreads outliers over a block. Compiles as C and as CUDA.
//
//   magnitude of a code   0  1    2  3    4  5  6  7
//                         0  0.5  1  1.5  2  3  4  6      bit 3 is the sign
//
// A byte holds two codes, the first in its lower half. value = code * inverse scale of its block * inverse
// scale of the tensor.
#pragma once

#include "gswbench/fp8.h"
#include "gswbench/random.h"

// Largest magnitudes: 6 for an E2M1 code, and 2688 = 6 * 448 for a code times the E4M3 inverse scale of its block.
#define FP4_LARGEST       6.0f
#define FP4_TENSOR_TARGET 2688.0f

GSWBENCH_INLINE float fp4_to_float(uint8_t code)
{
    // The multiplication corrects the exponent bias and normalises 0.5, as in fp8_to_float.
    uint32_t bits = (code & 7u) << 22;
    float    value;
    memcpy(&value, &bits, sizeof(value));
    value *= 0x1p126f;
    return code & 8u ? -value : value;
}

GSWBENCH_INLINE uint8_t fp4_sign(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (uint8_t)(bits >> 28 & 8u);
}

// Rounds to nearest, ties to even, and saturates. NaN becomes 6.
GSWBENCH_INLINE uint8_t fp4_from_float(float value)
{
    float size = fabsf(value);
    int   code = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) + (size >= 3.5f) +
               (size > 5.0f);
    return (uint8_t)(isnan(value) ? 7 : fp4_sign(value) | code);
}

// Rounds stochastically: rounds the magnitude up with a probability proportional to its distance from the lower code,
// in steps of 1/256. draw: uniform in 0 .. 255. Saturates; NaN becomes 6.
GSWBENCH_INLINE uint8_t fp4_draw(float value, uint32_t draw)
{
    float size = fabsf(value);
    int   code = (size >= 0.5f) + (size >= 1.0f) + (size >= 1.5f) + (size >= 2.0f) + (size >= 3.0f) + (size >= 4.0f) +
               (size >= 6.0f);
    float unit = code < 4 ? 512.0f : code < 6 ? 256.0f : 128.0f;    // 256 / distance between neighbours
    bool  up   = code < 7 && (size - fp4_to_float((uint8_t)code)) * unit > (float)draw + 0.5f;
    return (uint8_t)(isnan(value) ? 7 : fp4_sign(value) | (code + up));
}

GSWBENCH_INLINE uint8_t fp4_code(const uint8_t *codes, int64_t i)
{
    return (uint8_t)((unsigned)codes[i / 2] >> (i % 2 * 4) & 15u);
}

// Returns the scale that maps the amax (magnitude) of a tensor to 2688; 1 if the amax is 0, infinite or NaN.
GSWBENCH_INLINE float fp4_tensor_scale(float magnitude)
{
    return scaling_renew(1.0f, FP4_TENSOR_TARGET, magnitude);
}

// Returns the E4M3 inverse scale of a block with this amax (magnitude): amax * tensor_scale / 6.
GSWBENCH_INLINE uint8_t fp4_block_factor(float magnitude, float tensor_scale)
{
    return fp8_from_float(FORMAT_E4M3, fminf(magnitude * (tensor_scale * (1.0f / FP4_LARGEST)), FLT_MAX));
}

// Returns the factor that converts the values of a block to codes: 1 / (inverse scale of the block * inverse scale of
// the tensor), at most FLT_MAX.
GSWBENCH_INLINE float fp4_block_scale(uint8_t factor, float tensor_scale)
{
    return fminf(1.0f / (fp8_to_float(FORMAT_E4M3, factor) * (1.0f / tensor_scale)), FLT_MAX);
}

// Multiplies 16 values by the signs of S, then by H / 4, and rounds to BF16. H is Sylvester's Hadamard matrix; S is
// diagonal with Transformer Engine's fixed signs. S H / 4 is orthogonal, so a GEMM of two transformed operands gives
// the same result as one of the originals. Sums are in fp32, neighbours first.
GSWBENCH_INLINE void fp4_transform(float values[SCALING_NV_BLOCK])
{
    enum { MINUS = 0xd7e8 };    // bit i: sign of value i
    for (int i = 0; i < SCALING_NV_BLOCK; i++) {
        values[i] = MINUS >> i & 1 ? -values[i] : values[i];
    }
    for (int distance = 1; distance < SCALING_NV_BLOCK; distance *= 2) {
        for (int i = 0; i < SCALING_NV_BLOCK; i++) {
            if ((i & distance) == 0) {
                float one = values[i], other = values[i + distance];
                values[i]            = one + other;
                values[i + distance] = one - other;
            }
        }
    }
    for (int i = 0; i < SCALING_NV_BLOCK; i++) {
        values[i] = bf16_to_float(bf16_from_float(values[i] * 0.25f));
    }
}

// Random bytes for stochastic rounding. Each step has a key of 48 bits. The host passes it as two numbers of 24 bits,
// which fp32 represents exactly. Each quantized tensor that an op writes has its own stream (fp4_stream). Block i of
// the tensor, counted row by row, uses random_philox(key, stream, i).
enum { FP4_KEY_BITS = 24 };

GSWBENCH_INLINE uint64_t fp4_key(float low, float high)
{
    return (uint64_t)(uint32_t)(int32_t)high << FP4_KEY_BITS | (uint32_t)(int32_t)low;
}

GSWBENCH_INLINE uint64_t fp4_stream(int64_t draw, bool is_transposed)
{
    return (uint64_t)draw * 2 + is_transposed;
}

// Returns a random byte for value i of a block: byte i of the four words from one call of random_philox, lowest byte
// first.
GSWBENCH_INLINE uint32_t fp4_byte(const struct random_block *block, int i)
{
    return block->word[i / 4] >> (i % 4 * 8) & 255u;
}
