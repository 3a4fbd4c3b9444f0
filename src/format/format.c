// SPDX-License-Identifier: MIT
// Defines the table of number formats, computes sizes of arrays from it, and reads and writes elements.
#include "gswbench/format.h"

#include <inttypes.h>

#include "gswbench/fatal.h"
#include "gswbench/fp4.h"
#include "gswbench/status.h"

// clang-format off
#define RATE_NAME(NAME, name) [RATE_##NAME] = #name,
const char *const rate_names[RATE_COUNT + 1] = {RATES(RATE_NAME)};

#define FORMAT_ROW(NAME, name, bits, exponent, mantissa, smallest, largest, block, scale, levels, rate) \
    [FORMAT_##NAME] = {#name, bits, exponent, mantissa, smallest, largest, block, FORMAT_##scale, levels, RATE_##rate},
const struct format_row format_table[FORMAT_COUNT] = {FORMATS(FORMAT_ROW)};
// clang-format on

int64_t format_offset(enum format format, int64_t element)
{
    if (element * format_table[format].bits % 8 != 0) {
        FATAL(EXIT_INTERNAL, "element %" PRId64 " of an array in %s begins within a byte", element,
              format_name(format));
    }
    return format_bytes(format, element);
}

float element_read(enum format format, const void *data, int64_t i)
{
    return format == FORMAT_F32    ? ((const float *)data)[i]
           : format == FORMAT_I32  ? (float)((const int32_t *)data)[i]
           : format == FORMAT_BF16 ? bf16_to_float(((const bf16 *)data)[i])
           : format == FORMAT_E8M0 ? fp8_power(((const uint8_t *)data)[i])
           : format == FORMAT_E2M1 ? fp4_to_float(fp4_code(data, i))
                                   : fp8_to_float(format, ((const uint8_t *)data)[i]);
}

void element_write(enum format format, void *data, int64_t i, float number)
{
    if (format == FORMAT_F32) {
        ((float *)data)[i] = number;
    } else if (format == FORMAT_I32) {
        ((int32_t *)data)[i] = (int32_t)number;
    } else if (format == FORMAT_E2M1) {
        uint8_t *byte = (uint8_t *)data + i / 2;
        int      half = (int)(i % 2) * 4;
        *byte         = (uint8_t)((*byte & (0xf0 >> half)) | fp4_from_float(number) << half);
    } else if (format == FORMAT_E8M0) {
        ((uint8_t *)data)[i] = fp8_power_code(number);
    } else if (format == FORMAT_BF16) {
        ((bf16 *)data)[i] = bf16_from_float(number);
    } else {
        ((uint8_t *)data)[i] = fp8_from_float(format, number);
    }
}
