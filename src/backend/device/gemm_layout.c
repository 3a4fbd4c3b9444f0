// SPDX-License-Identifier: MIT
// Describes row-major GEMMs in the column-major terms of cuBLASLt, and checks that cuBLASLt supports them.
#include "gswbench/gemm.h"

#include <inttypes.h>

static struct gemm_matrix reread(int64_t rows, int64_t columns, bool transposed)
{
    // Row-major [rows, columns] in memory is column-major [columns, rows]. The transposition flag stays.
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
           left->transpose_a == right->transpose_a && left->transpose_b == right->transpose_b &&
           one->sums_fast == other->sums_fast && left->scaling_a == right->scaling_a &&
           left->scaling_b == right->scaling_b && one->a == other->a && one->b == other->b && one->c == other->c &&
           one->accumulates == other->accumulates && one->bias_alignment == other->bias_alignment &&
           one->alignment[0] == other->alignment[0] && one->alignment[1] == other->alignment[1] &&
           one->alignment[2] == other->alignment[2] && one->processors == other->processors;
}

// Returns whether cuBLASLt supports the combination of scalings. 1 x 128 combines with 1 x 128 and 128 x 128, but 128 x
// 128 does not combine with itself. MX combines only with MX, and NVFP4 only with NVFP4. None of these scalings allows
// fast accumulation.
static bool has_scaling(const struct gemm_key *key)
{
    int32_t a = key->shape.scaling_a, b = key->shape.scaling_b;
    bool    is_nv = scaling_is_nv((enum scaling)a);
    return is_nv || scaling_is_nv((enum scaling)b)    ? is_nv == scaling_is_nv((enum scaling)b) && !key->sums_fast
           : a == SCALING_WHOLE || b == SCALING_WHOLE ? a == b
           : a == SCALING_MX || b == SCALING_MX       ? a == b && !key->sums_fast
                                                      : (a == SCALING_1X128 || b == SCALING_1X128) && !key->sums_fast;
}

static bool has_types(const struct gemm_key *key)
{
    if (key->c != FORMAT_F32 && key->c != FORMAT_BF16) {
        return false;
    }
    return key->a == FORMAT_E2M1 || key->b == FORMAT_E2M1
               ? key->a == key->b && scaling_is_nv((enum scaling)key->shape.scaling_a)
           : format_is_low_precision(key->a)
               ? format_is_low_precision(key->b) && (key->a == FORMAT_E4M3 || key->b == FORMAT_E4M3)
           : key->a == FORMAT_F32 ? key->b == FORMAT_F32 && key->c == FORMAT_F32
                                  : key->a == FORMAT_BF16 && key->b == FORMAT_BF16;
}

status gemm_check(const struct gemm_key *key)
{
    bool                     is_fp4   = key->a == FORMAT_E2M1;
    int64_t                  multiple = is_fp4 || key->shape.scaling_a == SCALING_MX ? SCALING_BLOCK : 16;
    const struct gemm_shape *shape    = &key->shape;
    if (!has_types(key)) {
        return fail("cuBLASLt has no GEMM of %s and %s into %s", format_name(key->a), format_name(key->b),
                    format_name(key->c));
    }
    if (!format_is_low_precision(key->a)) {
        return OK;
    }
    if (shape->transpose_a || !shape->transpose_b) {
        return fail("cuBLASLt multiplies FP8 and FP4 row by row only");
    }
    if (shape->scaling_a == SCALING_ROWS || shape->scaling_b == SCALING_ROWS) {
        return fail("this version has no GEMM with scales per row: use [precision] recipe = current or block, or "
                    "[run] backend = host");
    }
    if (!has_scaling(key)) {
        return fail(
            "cuBLASLt scales FP8 per tensor, in 1x128 or 128x128 blocks, or in MX blocks, and FP4 in NV blocks");
    }
    if (shape->m % multiple != 0 || shape->n % multiple != 0 || shape->k % multiple != 0) {
        return fail("an %s GEMM of %" PRId64 " x %" PRId64 " x %" PRId64 ", whose sizes must be multiples of %" PRId64
                    ": change train.sequence, the model or its layout, or use precision.compute = bf16",
                    is_fp4 ? "FP4" : "FP8", shape->m, shape->n, shape->k, multiple);
    }
    return OK;
}

int gemm_alignment(const void *address)
{
    uintptr_t bits = (uintptr_t)address | 256;
    return (int)(bits & (~bits + 1));
}
