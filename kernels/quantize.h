// SPDX-License-Identifier: MIT
// Matrices in FP8, as they are, transposed, or both.
// Bound by memory: from bf16 to both copies 4 bytes an element where the scale is given, whether the largest magnitude
// is asked for or not, and where runs, squares or blocks have scales of their own; 6 where the scale follows from the
// values, which are then read twice unless what made them has found it. Copies of a matrix that is computed where it is
// needed (norm.h, activation.h) need only what that reads, and their own 2 bytes.
#ifndef GSWBENCH_KERNELS_QUANTIZE_H
#define GSWBENCH_KERNELS_QUANTIZE_H

#include <stdbool.h>

#include "gswbench/fp8.h"
#include "launch.h"

struct quantize_args {
    const void  *in;            // [rows, columns]; absent where they are computed
    uint8_t     *out;           // [rows, columns], may be absent
    uint8_t     *transposed;    // [columns, rows], may be absent
    void        *factor;        // what the codes are to be multiplied by, as scaling.h lays it out; may be absent
    void        *transposed_factor;    // of the transposed copy, where its parts have their own
    const float *scale;                // [1], or absent: what brings the largest magnitude to the largest number
    float       *magnitude;            // [1], may be absent: raised to the largest magnitude
    float       *scratch;              // [1], without a scale of the whole: receives the largest magnitude, or has it
    bool         has_magnitude;        // what made the values has left it there
    int64_t      rows, columns;
    enum scaling scaling;
    enum format  type, format;
};
KERNEL_FUNCTION int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target);

#endif
