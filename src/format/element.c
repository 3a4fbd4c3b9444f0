// SPDX-License-Identifier: MIT
// Element access by format.
#include "gswbench/format.h"

#include "gswbench/fp8.h"

float element_read(enum format format, const void *data, int64_t i)
{
    return format == FORMAT_F32    ? ((const float *)data)[i]
           : format == FORMAT_I32  ? (float)((const int32_t *)data)[i]
           : format == FORMAT_BF16 ? bf16_to_float(((const bf16 *)data)[i])
           : format == FORMAT_E8M0 ? fp8_power(((const uint8_t *)data)[i])
                                   : fp8_to_float(format, ((const uint8_t *)data)[i]);
}

void element_write(enum format format, void *data, int64_t i, float number)
{
    if (format == FORMAT_F32) {
        ((float *)data)[i] = number;
    } else if (format == FORMAT_I32) {
        ((int32_t *)data)[i] = (int32_t)number;
    } else if (format == FORMAT_E8M0) {
        ((uint8_t *)data)[i] = fp8_power_code(number);
    } else if (format == FORMAT_BF16) {
        ((bf16 *)data)[i] = bf16_from_float(number);
    } else {
        ((uint8_t *)data)[i] = fp8_from_float(format, number);
    }
}
