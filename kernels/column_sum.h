// SPDX-License-Identifier: MIT
// Column sums of a matrix (bias gradient), and a matrix of equal rows (bias for an accumulating GEMM). Memory-bound:
// one element read or written.
#ifndef GSWBENCH_KERNELS_COLUMN_SUM_H
#define GSWBENCH_KERNELS_COLUMN_SUM_H

#include "launch.h"

struct column_sum_args {
    const void *in;         // [rows, columns]
    void       *out;        // [columns]
    float      *scratch;    // kernel_column_sum_scratch_bytes
    int64_t     rows, columns;
    bool        accumulates;
    enum format in_type, out_type;
};
KERNEL_FUNCTION int     kernel_column_sum(const struct column_sum_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_column_sum_scratch_bytes(int64_t rows, int64_t columns,
                                                        const struct kernel_target *target);

struct equal_rows_args {
    const void *row;    // bf16 [columns]
    float      *out;    // [rows, columns]
    int64_t     rows, columns;
    bool        accumulates;
};
KERNEL_FUNCTION int kernel_equal_rows(const struct equal_rows_args *args, const struct kernel_target *target);

#endif
