// SPDX-License-Identifier: MIT
// Names of the element types.
#include "gswbench/dtype.h"

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {
        [DTYPE_F32] = "f32", [DTYPE_BF16] = "bf16", [DTYPE_I32] = "i32", [DTYPE_E4M3] = "e4m3", [DTYPE_E5M2] = "e5m2"};
    return names[dtype];
}
