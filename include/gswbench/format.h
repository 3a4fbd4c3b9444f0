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

// No op computes in the formats after E5M2 yet.
enum format {
    FORMAT_F32,
    FORMAT_BF16,
    FORMAT_I32,
    FORMAT_E4M3,
    FORMAT_E5M2,
    FORMAT_E2M1,
    FORMAT_E8M0,
    FORMAT_MXFP8,
    FORMAT_NVFP4,
    FORMAT_COUNT
};

// The classes of a device's peaks, RATE(NAME, name): GEMMs of a format run at the rate of its class. Nothing is
// multiplied in a format of no class.
#define RATES(RATE)                 RATE(FP32, fp32) RATE(BF16, bf16) RATE(FP8, fp8) RATE(FP4, fp4)
#define RATE_ENUMERATOR(NAME, name) RATE_##NAME,
enum rate { RATES(RATE_ENUMERATOR) RATE_COUNT, RATE_NONE = RATE_COUNT };
extern const char *const rate_names[RATE_COUNT];

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
