// SPDX-License-Identifier: MIT
// Row-major products in column-major terms.
#include "gswbench/gemm.h"

static struct gemm_matrix reread(int64_t rows, int64_t columns, bool transposed)
{
    // Row-major [rows, columns] as stored is column-major [columns, rows]; the transposition stays what it was.
    return (struct gemm_matrix){.rows = columns, .columns = rows, .leading = columns, .transposed = transposed};
}

struct gemm_layout gemm_layout_of(const struct gemm_shape *shape)
{
    int64_t m = shape->m, n = shape->n, k = shape->k;
    return (struct gemm_layout){
        .first  = shape->transpose_b ? reread(n, k, true) : reread(k, n, false),
        .second = shape->transpose_a ? reread(k, m, true) : reread(m, k, false),
        .out    = reread(m, n, false),
    };
}

bool gemm_key_is_equal(const struct gemm_key *one, const struct gemm_key *other)
{
    const struct gemm_shape *left = &one->shape, *right = &other->shape;
    return left->m == right->m && left->n == right->n && left->k == right->k &&
           left->transpose_a == right->transpose_a && left->transpose_b == right->transpose_b && one->a == other->a &&
           one->b == other->b && one->c == other->c && one->accumulates == other->accumulates &&
           one->alignment[0] == other->alignment[0] && one->alignment[1] == other->alignment[1] &&
           one->alignment[2] == other->alignment[2] && one->processors == other->processors;
}

int gemm_alignment(const void *address)
{
    uintptr_t bits = (uintptr_t)address | 256;
    return (int)(bits & (~bits + 1));
}
