// SPDX-License-Identifier: MIT
// Element types and their rounding. Compiles as C and as CUDA, so that both backends round alike.
#ifndef GSWBENCH_DTYPE_H
#define GSWBENCH_DTYPE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GSWBENCH_INLINE static __host__ __device__ inline
#else
#define GSWBENCH_INLINE static inline
#endif

enum dtype { DTYPE_F32, DTYPE_BF16, DTYPE_I32, DTYPE_E4M3, DTYPE_E5M2, DTYPE_COUNT };

typedef uint16_t bf16;

GSWBENCH_INLINE bool dtype_is_fp8(enum dtype dtype)
{
    return dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2;
}

// Bytes of one element.
GSWBENCH_INLINE int64_t dtype_bytes(enum dtype dtype)
{
    return dtype_is_fp8(dtype) ? 1 : dtype == DTYPE_BF16 ? 2 : 4;
}

// "f32", "bf16", "i32", "e4m3", "e5m2"
const char *dtype_name(enum dtype dtype);

GSWBENCH_INLINE float bf16_to_float(bf16 value)
{
    uint32_t bits = (uint32_t)value << 16;
    float    wide;
    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

// Round to nearest, ties to even; NaN stays a quiet NaN.
GSWBENCH_INLINE bf16 bf16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (bf16)((bits >> 16) | 0x40u);
    }
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
