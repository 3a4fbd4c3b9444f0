// SPDX-License-Identifier: MIT
// The scales that bring values into the range of a narrow format. Compiles as C and as CUDA, like format.h.
#ifndef GSWBENCH_SCALING_H
#define GSWBENCH_SCALING_H

#include <float.h>
#include <math.h>

#include "gswbench/format.h"

// What shares a scale in a matrix [rows, columns]: all of it, each run of 128 in a row, or each square of 128 x 128.
// Factors lie as devices read them: those of runs [runs of a row, rows], those of squares [squares below each other,
// squares beside each other], where each row is padded to a multiple of 4 with unused factors.
enum scaling { SCALING_WHOLE, SCALING_RUNS, SCALING_SQUARES };
enum { SCALING_SIDE = 128 };

// Runs of a row, or squares beside or below each other.
GSWBENCH_INLINE int64_t scaling_sides(int64_t elements)
{
    return (elements + SCALING_SIDE - 1) / SCALING_SIDE;
}

GSWBENCH_INLINE int64_t scaling_factors(enum scaling scaling, int64_t rows, int64_t columns)
{
    return scaling == SCALING_WHOLE  ? 1
           : scaling == SCALING_RUNS ? scaling_sides(columns) * rows
                                     : scaling_sides(rows) * ((scaling_sides(columns) + 3) / 4 * 4);
}

// Where the factor of an element is among them.
GSWBENCH_INLINE int64_t scaling_factor_at(enum scaling scaling, int64_t rows, int64_t columns, int64_t row,
                                          int64_t column)
{
    return scaling == SCALING_WHOLE ? 0
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
