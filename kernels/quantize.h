// SPDX-License-Identifier: MIT
// Quantizes a matrix to FP8: row-wise, column-wise (transposed), or both.
//
// Memory-bound. Writing both copies of a bf16 matrix moves 4 bytes per element if the scale is given or each scaling
// block has a scale. A scale that depends on all elements needs a first pass that reads them, so 6 bytes, unless the op
// before has computed the amax. A norm or activation that writes both copies itself (norm.h) moves its
// inputs and 2 bytes per element.
#pragma once

#include "gswbench/fp8.h"
#include "launch.h"

struct quantize_args {
    const void  *in;                          // [rows, columns]; NULL if a norm or activation computes it
    uint8_t     *out;                         // [rows, columns] or NULL
    uint8_t     *transposed;                  // [columns, rows] or NULL
    void        *factor;                      // inverse scales of out, in the layout of fp8.h, or NULL
    void        *transposed_inverse_scale;    // inverse scales of transposed, if blocks have scales; or NULL
    const float *scale;                       // [1]: per-tensor scale; NULL: computed from the amax
    float       *magnitude;                   // [1] or NULL: becomes the maximum of its value and the amax
    float       *scratch;                     // [1]: amax, if a per-tensor scale is computed from it
    bool         has_magnitude;               // the norm or activation has already written the amax to scratch
    int64_t      rows, columns;
    enum scaling scaling;
    enum format  type, format;
};
KERNEL_FUNCTION int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target);

// Quantization to NVFP4. A separate struct, because longer arguments would make the FP8 kernels spill registers.
struct quantize_nv_args {
    struct quantize_args of;                                        // of.scratch [2]: amax of each copy
    float               *tensor_scale, *transposed_tensor_scale;    // [1]: inverse per-tensor scale of each copy
    const float         *key;                                       // [2]: key of stochastic rounding, 24 bits each
    int64_t              draw;    // number of the op; each op draws different random numbers
    bool                 transforms, is_stochastic;
};
KERNEL_FUNCTION int kernel_quantize_nv(const struct quantize_nv_args *args, const struct kernel_target *target);

// Computes alpha and beta of an NVFP4 GEMM: out[0] = scale * one * other, out[1] = keep. one and other: inverse
// per-tensor scales of the operands, which are known only during the step. So alpha and beta are in device memory.
struct factors_args {
    const float *one, *other;    // [1]; NULL: 1
    float       *out;            // [2]
    float        scale, keep;    // keep: factor of the old output
};
KERNEL_FUNCTION int kernel_factors(const struct factors_args *args, const struct kernel_target *target);

// Transposes an FP8 matrix. Memory-bound: 2 bytes per element.
struct transpose_args {
    const uint8_t *in;     // [rows, columns]
    uint8_t       *out;    // [columns, rows]
    int64_t        rows, columns;
};
KERNEL_FUNCTION int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target);

// amax of an array, and FP8 scales from a history of amax values (delayed scaling). Memory-bound: the array is read
// once; the short histories are read and written.
struct magnitude_args {
    const void *in;           // [elements]
    float      *magnitude;    // [1]: raised to the amax
    int64_t     elements;
    enum format type;
};
KERNEL_FUNCTION int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target);

struct rescale_args {
    float  *magnitude;    // [slots], one per tensor: amax of the step; reset to 0
    float  *history;      // [slots, length] or NULL: shifted by one, newest first
    float  *scale;        // [slots]: target / maximum of the history
    float  *factor;       // [slots]: 1 / scale
    int64_t slots, length;
    float   target;
};
KERNEL_FUNCTION int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target);
