// SPDX-License-Identifier: MIT
// Number formats, a row each. Rounding to bf16 compiles as C and as CUDA, so that both backends round alike; fp8.h has
// that of the narrower formats.
#ifndef GSWBENCH_FORMAT_H
#define GSWBENCH_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GSWBENCH_INLINE static __host__ __device__ inline
#else
#define GSWBENCH_INLINE static inline
#endif

// The classes of a device's peaks, RATE(NAME, name): GEMMs of a format run at the rate of its class. Nothing is
// multiplied in a format of no class.
#define RATES(RATE)                 RATE(FP32, fp32) RATE(BF16, bf16) RATE(FP8, fp8) RATE(FP4, fp4)
#define RATE_ENUMERATOR(NAME, name) RATE_##NAME,
enum rate { RATES(RATE_ENUMERATOR) RATE_COUNT, RATE_NONE = RATE_COUNT };
extern const char *const rate_names[RATE_COUNT];

// clang-format off
// FORMAT(NAME, name, bits, exponent, mantissa, smallest, largest, block, scale, levels, rate): a value of enum format,
// and the fields of struct format_row. E4M3 and E5M2 are as in the OCP 8-bit Floating Point Specification 1.0, E2M1,
// E8M0 and MXFP8 as in the OCP Microscaling Formats (MX) Specification 1.0, NVFP4 as in NVIDIA's documentation of cuBLAS
// (Block scaling): E2M1 with a scale in E4M3 for 16 elements and one in fp32 for the tensor. Tensors are
// in E4M3 and E5M2; MXFP8 is what these are with factors by blocks (scaling.h). No op computes in NVFP4 yet.
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
    double      smallest, largest;                     // of its magnitudes; the smallest that is not 0
    // Elements that share a scale, which the format prescribes, and the format of that scale. 0: who uses the format
    // chooses what shares a scale (scaling.h), or needs none.
    int         block;
    enum format scale;
    int         levels;    // of scales: 1 of a block, 2 with one in fp32 for the whole tensor, too
    enum rate   rate;
};
extern const struct format_row format_table[FORMAT_COUNT];

static inline const char *format_name(enum format format)
{
    return format_table[format].name;
}

// Too narrow for values as they are: they are multiplied by a scale first.
static inline bool format_is_narrow(enum format format)
{
    return format_table[format].bits < 16;
}

// Bytes of so many elements; an odd number of half bytes is rounded up. Scales are stored elsewhere.
static inline int64_t format_bytes(enum format format, int64_t elements)
{
    return (elements * format_table[format].bits + 7) / 8;
}

// Elements that fit into so many bytes.
static inline int64_t format_elements(enum format format, int64_t bytes)
{
    return bytes * 8 / format_table[format].bits;
}

// Bytes before an element. FATAL for one that begins within a byte.
int64_t format_offset(enum format format, int64_t element);

// Bytes of the scales that the format prescribes for so many elements in a row.
int64_t format_scale_bytes(enum format format, int64_t elements);

typedef uint16_t bf16;

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
