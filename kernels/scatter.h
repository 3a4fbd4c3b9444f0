// SPDX-License-Identifier: MIT
// The gradient of the embedding: each row of the table sums the rows of its tokens, in their order.
// Bound by memory: the tokens' rows once, and the table's once (where it accumulates: those that have tokens, twice).
// Linking compares all pairs of tokens, 128 at a time, which is little beside that up to a hundred thousand of them.
#ifndef GSWBENCH_KERNELS_SCATTER_H
#define GSWBENCH_KERNELS_SCATTER_H

#include "gswbench/format.h"
#include "launch.h"

struct scatter_args {
    const int32_t *tokens;      // [rows]
    const void    *gradient;    // [rows, columns]
    void          *table;       // [table_rows, columns]: of tokens first .. first + table_rows - 1
    int32_t       *scratch;     // scatter_scratch_bytes
    int64_t        rows, columns, table_rows, first;
    float          multiplier;    // of each sum
    bool           accumulates;
    enum format    activation, table_type;
};
KERNEL_FUNCTION int kernel_scatter(const struct scatter_args *args, const struct kernel_target *target);

// For each place in tokens the next and the one before of the same token; -1: none.
GSWBENCH_INLINE int64_t scatter_scratch_bytes(int64_t rows)
{
    return 2 * rows * (int64_t)sizeof(int32_t);
}

#endif
