// SPDX-License-Identifier: MIT
// Names of the element types.
#include "gswbench/dtype.h"

const char *dtype_name(enum dtype dtype)
{
    static const char *const names[DTYPE_COUNT] = {[DTYPE_F32] = "f32", [DTYPE_BF16] = "bf16", [DTYPE_I32] = "i32"};
    return names[dtype];
}
