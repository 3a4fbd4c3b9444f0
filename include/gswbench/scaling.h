// SPDX-License-Identifier: MIT
// The scales that bring values into the range of a narrow format. Compiles as C and as CUDA, like format.h.
#ifndef GSWBENCH_SCALING_H
#define GSWBENCH_SCALING_H

#include <float.h>
#include <math.h>

#include "gswbench/format.h"

// What shares a scale in a matrix [rows, columns]: all of it, each run of 128 in a row, each square of 128 x 128, each
// block of 32 in a row, or each row. Factors of rows lie in their order, others as devices read them: those of runs
// [runs of a row, rows], those of squares [squares below each other, squares beside each other], where each row is
// padded to a multiple of 4 with unused factors. Those of blocks are in E8M0, a tile of 512 behind the other for each
// 128 rows and 4 blocks of a row, with zeros where the matrix ends; in a tile 4 blocks of a row lie together, and rows
// that are 32 apart.
enum scaling { SCALING_WHOLE, SCALING_RUNS, SCALING_SQUARES, SCALING_BLOCKS, SCALING_ROWS };
enum { SCALING_SIDE = 128, SCALING_BLOCK = 32, SCALING_TILE = 512 };

// Elements in depth that have one factor, where parts have factors.
GSWBENCH_INLINE int64_t scaling_depth(enum scaling scaling)
{
    return scaling == SCALING_BLOCKS ? SCALING_BLOCK : SCALING_SIDE;
}

GSWBENCH_INLINE enum format scaling_format(enum scaling scaling)
{
    return scaling == SCALING_BLOCKS ? FORMAT_E8M0 : FORMAT_F32;
}

// Runs of a row, or squares beside or below each other.
GSWBENCH_INLINE int64_t scaling_sides(int64_t elements)
{
    return (elements + SCALING_SIDE - 1) / SCALING_SIDE;
}

GSWBENCH_INLINE int64_t scaling_factors(enum scaling scaling, int64_t rows, int64_t columns)
{
    return scaling == SCALING_WHOLE    ? 1
           : scaling == SCALING_RUNS   ? scaling_sides(columns) * rows
           : scaling == SCALING_ROWS   ? rows
           : scaling == SCALING_BLOCKS ? scaling_sides(rows) * scaling_sides(columns) * SCALING_TILE
                                       : scaling_sides(rows) * ((scaling_sides(columns) + 3) / 4 * 4);
}

// Where the factor of an element is among those of blocks.
GSWBENCH_INLINE int64_t scaling_block_at(int64_t columns, int64_t row, int64_t column)
{
    int64_t tile = row / SCALING_SIDE * scaling_sides(columns) + column / SCALING_SIDE;
    return tile * SCALING_TILE + row % 32 * 16 + row % SCALING_SIDE / 32 * 4 + column % SCALING_SIDE / SCALING_BLOCK;
}

// Where the factor of an element is among them.
GSWBENCH_INLINE int64_t scaling_factor_at(enum scaling scaling, int64_t rows, int64_t columns, int64_t row,
                                          int64_t column)
{
    return scaling == SCALING_WHOLE    ? 0
           : scaling == SCALING_BLOCKS ? scaling_block_at(columns, row, column)
           : scaling == SCALING_ROWS   ? row
           : scaling == SCALING_RUNS
               ? column / SCALING_SIDE * rows + row
               : row / SCALING_SIDE * ((scaling_sides(columns) + 3) / 4 * 4) + column / SCALING_SIDE;
}

// What a tensor is multiplied by, so that its largest magnitude becomes target. The scale stays as it is where there is
// no such number.
GSWBENCH_INLINE float scaling_renew(float scale, float target, float magnitude)
{
    if (!(magnitude > 0.0f) || isinf(magnitude)) {
        return scale;
    }
    return fminf(target / magnitude, FLT_MAX);
}

#endif
