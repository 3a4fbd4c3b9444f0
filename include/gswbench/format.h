// SPDX-License-Identifier: MIT
// Describes number formats: a table with one row per format, and conversion to and from bf16. The conversions compile
// as C and as CUDA, so host and device round identically. fp8.h and fp4.h convert the formats of 8 and 4 bits.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GSWBENCH_INLINE static __host__ __device__ inline
#else
#define GSWBENCH_INLINE static inline
#endif

// Classes of peak FLOP/s, as RATE(NAME, name). A GEMM reaches at most the peak of its format's class. Formats with
// RATE_NONE are never GEMM operands.
#define RATES(RATE)                 RATE(FP32, fp32) RATE(BF16, bf16) RATE(FP8, fp8) RATE(FP4, fp4)
#define RATE_ENUMERATOR(NAME, name) RATE_##NAME,
enum rate { RATES(RATE_ENUMERATOR) RATE_COUNT, RATE_NONE = RATE_COUNT };
extern const char *const rate_names[RATE_COUNT + 1];    // ends with NULL

// clang-format off
// FORMAT(NAME, name, bits, exponent, mantissa, smallest, largest, block, scale, levels, rate): NAME and the fields of
// struct format_row.
//
// E4M3 and E5M2 follow the OCP 8-bit Floating Point Specification 1.0; E2M1, E8M0 and MXFP8 the OCP Microscaling
// Formats (MX) Specification 1.0; NVFP4 the cuBLAS documentation (block scaling): E2M1 with an E4M3 scale for 16
// elements and an fp32 scale for the tensor.
//
// FP8 tensors are stored as E4M3 or E5M2. MXFP8 is the same data with one scale for each block (fp8.h), NVFP4 is E2M1
// with its scales (fp4.h).
#define FORMATS(FORMAT) \
    FORMAT(F32,   f32,   32, 8, 23, 0x1p-149, 0x1.fffffep127, 0,  F32,  0, FP32) \
    FORMAT(BF16,  bf16,  16, 8, 7,  0x1p-133, 0x1.fep127,     0,  F32,  0, BF16) \
    FORMAT(I32,   i32,   32, 0, 31, 1,        2147483647,     0,  F32,  0, NONE) \
    FORMAT(E4M3,  e4m3,  8,  4, 3,  0x1p-9,   448,            0,  F32,  0, FP8)  \
    FORMAT(E5M2,  e5m2,  8,  5, 2,  0x1p-16,  57344,          0,  F32,  0, FP8)  \
    FORMAT(E2M1,  e2m1,  4,  2, 1,  0.5,      6,              0,  F32,  0, FP4)  \
    FORMAT(E8M0,  e8m0,  8,  8, 0,  0x1p-127, 0x1p127,        0,  F32,  0, NONE) \
    FORMAT(MXFP8, mxfp8, 8,  4, 3,  0x1p-9,   448,            32, E8M0, 1, FP8)  \
    FORMAT(NVFP4, nvfp4, 4,  2, 1,  0.5,      6,              16, E4M3, 2, FP4)
#define FORMAT_ENUMERATOR(NAME, ...) FORMAT_##NAME,
enum format { FORMATS(FORMAT_ENUMERATOR) FORMAT_COUNT };
// clang-format on

struct format_row {
    const char *name;
    int         bits, exponent_bits, mantissa_bits;    // of an element
    double      smallest, largest;                     // smallest and largest finite nonzero magnitude
    // Elements that share a scale, and the format of that scale. 0: the format itself has no scales, but an FP8 tensor
    // can have them (enum scaling in fp8.h).
    int         block;
    enum format scale;
    int         levels;    // levels of scaling: 1 for blocks, 2 for blocks and an fp32 scale of the tensor
    enum rate   rate;
};
extern const struct format_row format_table[FORMAT_COUNT];

static inline const char *format_name(enum format format)
{
    return format_table[format].name;
}

// Returns whether the format has fewer than 16 bits, so that a tensor needs a scale.
static inline bool format_is_low_precision(enum format format)
{
    return format_table[format].bits < 16;
}

// Returns the bytes of an array, rounded up to whole bytes. Scales are stored separately.
static inline int64_t format_bytes(enum format format, int64_t elements)
{
    return (elements * format_table[format].bits + 7) / 8;
}

// Returns the number of elements that fit into this number of bytes.
static inline int64_t format_elements(enum format format, int64_t bytes)
{
    return bytes * 8 / format_table[format].bits;
}

// Returns the byte offset of an element; FATAL if the element does not begin at a byte.
int64_t format_offset(enum format format, int64_t element);

typedef uint16_t bf16;

GSWBENCH_INLINE float bf16_to_float(bf16 value)
{
    uint32_t bits = (uint32_t)value << 16;
    float    wide;
    memcpy(&wide, &bits, sizeof(wide));
    return wide;
}

// Rounds to nearest, ties to even; NaN becomes a quiet NaN.
GSWBENCH_INLINE bf16 bf16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (bf16)((bits >> 16) | 0x40u);
    }
    return (bf16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Reads and writes single elements of an array in any format, for code that inspects data.

float element_read(enum format format, const void *data, int64_t i);
// Rounds to nearest.
void element_write(enum format format, void *data, int64_t i, float number);
