// SPDX-License-Identifier: MIT
// Matrices in FP8, as they are, transposed, or both, and the scales for them.
// Bound by memory: from bf16 to both copies 4 bytes an element where the scale is given, whether the largest magnitude
// is asked for or not; 6 where the scale follows from the values, which are then read twice; transposing codes 2.
#ifndef GSWBENCH_KERNELS_QUANTIZE_H
#define GSWBENCH_KERNELS_QUANTIZE_H

#include "gswbench/dtype.h"
#include "launch.h"

// A block takes one tile of the matrix at a time, a thread LAUNCH_WIDTH of its rows by as many of its columns.
enum { QUANTIZE_TILE = 128, QUANTIZE_THREADS = QUANTIZE_TILE / LAUNCH_WIDTH * (QUANTIZE_TILE / LAUNCH_WIDTH) };

struct quantize_args {
    const void  *in;            // [rows, columns]
    uint8_t     *out;           // [rows, columns], may be absent
    uint8_t     *transposed;    // [columns, rows], may be absent
    float       *factor;        // [1]: what the codes are to be multiplied by; may be absent
    const float *scale;         // [1], or absent: what brings the largest magnitude to the largest number
    float       *magnitude;     // [1], may be absent: raised to the largest magnitude
    float       *scratch;       // [1], without a scale
    int64_t      rows, columns;
    enum dtype   type, format;
};
KERNEL_FUNCTION int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target);

struct magnitude_args {
    const void *in;           // [elements]
    float      *magnitude;    // [1]: raised to the largest magnitude
    int64_t     elements;
    enum dtype  type;
};
KERNEL_FUNCTION int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target);

struct transpose_args {
    const uint8_t *in;     // [rows, columns]
    uint8_t       *out;    // [columns, rows]
    int64_t        rows, columns;
};
KERNEL_FUNCTION int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target);

struct rescale_args {
    float  *magnitude;    // [slots]: of the step; becomes 0
    float  *history;      // [slots, history], may be absent: moves on by one, and takes it in front
    float  *scale;        // [slots]: target / the largest of the history
    float  *factor;       // [slots]: 1 / scale
    int64_t slots, length;
    float   target;
};
KERNEL_FUNCTION int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target);

#endif
