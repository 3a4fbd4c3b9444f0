// SPDX-License-Identifier: MIT
// The format table, and array sizes derived from it.
#include "gswbench/format.h"

#include <inttypes.h>

#include "gswbench/fatal.h"
#include "gswbench/status.h"

// clang-format off
#define RATE_NAME(NAME, name) [RATE_##NAME] = #name,
const char *const rate_names[RATE_COUNT] = {RATES(RATE_NAME)};

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
