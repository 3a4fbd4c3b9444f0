// SPDX-License-Identifier: MIT
// Scaling modes of FP8 tensors and the layout of their scales. Compiles as C and as CUDA.
#pragma once

#include <float.h>
#include <math.h>

#include "gswbench/format.h"

// Elements that share a scale in a matrix [rows, columns]:
//
//   SCALING_WHOLE     the tensor
//   SCALING_1X128      1 x 128
//   SCALING_128X128   128 x 128
//   SCALING_MX    1 x 32, E8M0 (MX)
//   SCALING_ROWS      a row
//
// Inverse scales lie as cuBLASLt reads them. 1 x 128: [columns / 128, rows]. 128 x 128: [rows / 128, columns / 128]
// with rows padded to a multiple of 4. MX: one tile of 512 for each 128 rows and 128 columns, zero-padded at the matrix
// edge. (row, column) of a tile has byte (row % 32) * 16 + (row / 32) * 4 + column / 32. Rows: in order.
enum scaling { SCALING_WHOLE, SCALING_1X128, SCALING_128X128, SCALING_MX, SCALING_ROWS };
enum { SCALING_SIDE = 128, SCALING_BLOCK = 32, SCALING_TILE = 512 };

// Elements along k that share a scale in 1 x 128, 128 x 128 and MX scaling.
GSWBENCH_INLINE int64_t scaling_depth(enum scaling scaling)
{
    return scaling == SCALING_MX ? SCALING_BLOCK : SCALING_SIDE;
}

GSWBENCH_INLINE enum format scaling_format(enum scaling scaling)
{
    return scaling == SCALING_MX ? FORMAT_E8M0 : FORMAT_F32;
}

// Blocks of 128 that cover this number of elements.
GSWBENCH_INLINE int64_t scaling_sides(int64_t elements)
{
    return (elements + SCALING_SIDE - 1) / SCALING_SIDE;
}

GSWBENCH_INLINE int64_t scaling_inverses(enum scaling scaling, int64_t rows, int64_t columns)
{
    return scaling == SCALING_WHOLE   ? 1
           : scaling == SCALING_1X128 ? scaling_sides(columns) * rows
           : scaling == SCALING_ROWS  ? rows
           : scaling == SCALING_MX    ? scaling_sides(rows) * scaling_sides(columns) * SCALING_TILE
                                      : scaling_sides(rows) * ((scaling_sides(columns) + 3) / 4 * 4);
}

// Index of an element's inverse scale in the MX layout.
GSWBENCH_INLINE int64_t scaling_block_at(int64_t columns, int64_t row, int64_t column)
{
    int64_t tile = row / SCALING_SIDE * scaling_sides(columns) + column / SCALING_SIDE;
    return tile * SCALING_TILE + row % 32 * 16 + row % SCALING_SIDE / 32 * 4 + column % SCALING_SIDE / SCALING_BLOCK;
}

// Index of an element's inverse scale.
GSWBENCH_INLINE int64_t scaling_inverse_at(enum scaling scaling, int64_t rows, int64_t columns, int64_t row,
                                           int64_t column)
{
    return scaling == SCALING_WHOLE  ? 0
           : scaling == SCALING_MX   ? scaling_block_at(columns, row, column)
           : scaling == SCALING_ROWS ? row
           : scaling == SCALING_1X128
               ? column / SCALING_SIDE * rows + row
               : row / SCALING_SIDE * ((scaling_sides(columns) + 3) / 4 * 4) + column / SCALING_SIDE;
}

// Scale that maps magnitude to target, at most FLT_MAX. Returns the old scale if magnitude is 0, infinite or NaN.
GSWBENCH_INLINE float scaling_renew(float scale, float target, float magnitude)
{
    if (!(magnitude > 0.0f) || isinf(magnitude)) {
        return scale;
    }
    return fminf(target / magnitude, FLT_MAX);
}
