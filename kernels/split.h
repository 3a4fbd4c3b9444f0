// SPDX-License-Identifier: MIT
// Splits the columns of a matrix in two, or joins them. Memory-bound: in bf16, 4 bytes per element.
#ifndef GSWBENCH_KERNELS_SPLIT_H
#define GSWBENCH_KERNELS_SPLIT_H

#include "gswbench/format.h"
#include "launch.h"

struct split_args {
    void       *whole;           // [rows, columns]
    void       *first, *rest;    // [rows, first_columns], [rows, columns - first_columns]
    int64_t     rows, columns, first_columns;
    bool        joins;
    enum format type;
};
KERNEL_FUNCTION int kernel_split(const struct split_args *args, const struct kernel_target *target);

#endif
