// SPDX-License-Identifier: MIT
// Transposes an FP8 matrix. Memory-bound: 2 bytes per element.
#ifndef GSWBENCH_KERNELS_TRANSPOSE_H
#define GSWBENCH_KERNELS_TRANSPOSE_H

#include "gswbench/format.h"
#include "launch.h"

struct transpose_args {
    const uint8_t *in;     // [rows, columns]
    uint8_t       *out;    // [columns, rows]
    int64_t        rows, columns;
};
KERNEL_FUNCTION int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target);

#endif
