// SPDX-License-Identifier: MIT
// FP8 quantization of a matrix: row-wise, column-wise (transposed), or both.
//
// Memory-bound. From bf16 to both copies: 4 bytes per element if the scale is given, or if each block has a scale. If
// one scale depends on all values, 6 bytes, because they are read twice; 4 if the producer has computed the amax. A
// fused producer (norm.h, activation.h) adds only its own reads to the 2 bytes written.
#pragma once

#include "gswbench/fp8.h"
#include "launch.h"

struct quantize_args {
    const void  *in;                          // [rows, columns]; NULL if computed by the source
    uint8_t     *out;                         // [rows, columns] or NULL
    uint8_t     *transposed;                  // [columns, rows] or NULL
    void        *factor;                      // inverse scales, in the layout of fp8.h, or NULL
    void        *transposed_inverse_scale;    // of the transposed copy, with block scaling
    const float *scale;                       // [1]: given per-tensor scale; NULL: from the amax
    float       *magnitude;                   // [1] or NULL: raised to the amax
    float       *scratch;                     // [1]: amax, for a per-tensor scale that is not given
    bool         has_magnitude;               // the producer has written the amax to scratch
    int64_t      rows, columns;
    enum scaling scaling;
    enum format  type, format;
};
KERNEL_FUNCTION int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target);

// NV scaling. A separate struct, because longer arguments make the FP8 kernels spill registers.
struct quantize_nv_args {
    struct quantize_args of;                                        // scratch has two elements
    float               *tensor_scale, *transposed_tensor_scale;    // [1]: inverse scales of the copies
    const float         *key;                                       // [2]: of stochastic rounding, in parts of 24 bits
    int64_t              draw;    // number of the op, so that each op draws other numbers
    bool                 transforms, is_stochastic;
};
KERNEL_FUNCTION int kernel_quantize_nv(const struct quantize_nv_args *args, const struct kernel_target *target);

// alpha and beta of a GEMM with NV scaling: out[0] = scale * one * other, out[1] = keep. They are in device memory
// because they depend on the tensor scales of both operands.
struct factors_args {
    const float *one, *other;    // [1]; NULL: 1
    float       *out;            // [2]
    float        scale, keep;    // keep: factor of the previous output
};
KERNEL_FUNCTION int kernel_factors(const struct factors_args *args, const struct kernel_target *target);

// Transposes an FP8 matrix. Memory-bound: 2 bytes per element.
struct transpose_args {
    const uint8_t *in;     // [rows, columns]
    uint8_t       *out;    // [columns, rows]
    int64_t        rows, columns;
};
KERNEL_FUNCTION int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target);

// amax of an array, and FP8 scales from an amax history (delayed scaling). Memory-bound: an array is read once; the
// short histories are read and written.
struct magnitude_args {
    const void *in;           // [elements]
    float      *magnitude;    // [1]: raised to the amax
    int64_t     elements;
    enum format type;
};
KERNEL_FUNCTION int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target);

struct rescale_args {
    float  *magnitude;    // [slots]: amax of the step; reset to 0
    float  *history;      // [slots, history] or NULL: shifted by one, newest first
    float  *scale;        // [slots]: target / maximum of the history
    float  *factor;       // [slots]: 1 / scale
    int64_t slots, length;
    float   target;
};
KERNEL_FUNCTION int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target);
