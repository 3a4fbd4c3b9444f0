// SPDX-License-Identifier: MIT
// Gradient of the embedding table: each table row sums the gradients of its tokens in order. Memory-bound: token rows
// are read once and the table is written once (with accumulates, used rows are read and written). Linking compares all
// pairs of tokens, 128 at a time; this is negligible up to a hundred thousand tokens.
#ifndef GSWBENCH_KERNELS_SCATTER_H
#define GSWBENCH_KERNELS_SCATTER_H

#include "gswbench/format.h"
#include "launch.h"

struct scatter_args {
    const int32_t *tokens;      // [rows]
    const void    *gradient;    // [rows, columns]
    void          *table;       // [table_rows, columns]: tokens first .. first + table_rows - 1
    int32_t       *scratch;     // scatter_scratch_bytes
    int64_t        rows, columns, table_rows, first;
    float          multiplier;    // scales each sum
    bool           accumulates;
    enum format    activation, table_type;
};
KERNEL_FUNCTION int kernel_scatter(const struct scatter_args *args, const struct kernel_target *target);

// Next and previous row of the same token for each row; -1: none.
GSWBENCH_INLINE int64_t scatter_scratch_bytes(int64_t rows)
{
    return 2 * rows * (int64_t)sizeof(int32_t);
}

#endif
