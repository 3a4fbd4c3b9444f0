// SPDX-License-Identifier: MIT
// The table of number formats. E2M1, E8M0 and MXFP8 are as in the OCP Microscaling Formats (MX) Specification 1.0, E4M3
// and E5M2 as in the OCP 8-bit Floating Point Specification 1.0, NVFP4 as in NVIDIA's documentation of cuBLAS (Block
// scaling): E2M1 with a scale in E4M3 for 16 elements and one in fp32 for the tensor.
#include "gswbench/format.h"

#include <inttypes.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"

// clang-format off
#define RATE_NAME(NAME, name) [RATE_##NAME] = #name,
const char *const rate_names[RATE_COUNT] = {RATES(RATE_NAME)};

const struct format_row format_table[FORMAT_COUNT] = {
    //                name,    bits, exponent, mantissa, smallest, largest,           block, scale,     levels, rate
    [FORMAT_F32]   = {"f32",   32,   8,        23,       0x1p-149, 0x1.fffffep127,    0,     FORMAT_F32,  0,    RATE_FP32},
    [FORMAT_BF16]  = {"bf16",  16,   8,        7,        0x1p-133, 0x1.fep127,        0,     FORMAT_F32,  0,    RATE_BF16},
    [FORMAT_I32]   = {"i32",   32,   0,        31,       1,        2147483647,        0,     FORMAT_F32,  0,    RATE_NONE},
    [FORMAT_E4M3]  = {"e4m3",  8,    4,        3,        0x1p-9,   448,               0,     FORMAT_F32,  0,    RATE_FP8},
    [FORMAT_E5M2]  = {"e5m2",  8,    5,        2,        0x1p-16,  57344,             0,     FORMAT_F32,  0,    RATE_FP8},
    [FORMAT_E2M1]  = {"e2m1",  4,    2,        1,        0.5,      6,                 0,     FORMAT_F32,  0,    RATE_FP4},
    [FORMAT_E8M0]  = {"e8m0",  8,    8,        0,        0x1p-127, 0x1p127,           0,     FORMAT_F32,  0,    RATE_NONE},
    [FORMAT_MXFP8] = {"mxfp8", 8,    4,        3,        0x1p-9,   448,               32,    FORMAT_E8M0, 1,    RATE_FP8},
    [FORMAT_NVFP4] = {"nvfp4", 4,    2,        1,        0.5,      6,                 16,    FORMAT_E4M3, 2,    RATE_FP4},
};
// clang-format on

int64_t format_offset(enum format format, int64_t element)
{
    if (element * format_table[format].bits % 8 != 0) {
        FATAL(EXIT_INTERNAL, "element %" PRId64 " of an array in %s begins within a byte", element,
              format_name(format));
    }
    return format_bytes(format, element);
}

int64_t format_scale_bytes(enum format format, int64_t elements)
{
    const struct format_row *row = &format_table[format];
    if (row->block == 0 || elements == 0) {
        return 0;
    }
    int64_t blocks = (elements + row->block - 1) / row->block;
    return format_bytes(row->scale, blocks) + format_bytes(FORMAT_F32, row->levels - 1);
}
