// SPDX-License-Identifier: MIT
// [precision] options, and the format of each role in a training step derived from them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

enum compute_precision { COMPUTE_FP32, COMPUTE_BF16, COMPUTE_FP8 };
enum scaling_recipe { RECIPE_DELAYED, RECIPE_CURRENT, RECIPE_BLOCK, RECIPE_MXFP8, RECIPE_ROWS };
enum fp8_format { FP8_HYBRID, FP8_E4M3 };
enum linear_kind { LINEAR_KIND_QKV, LINEAR_KIND_PROJECTION, LINEAR_KIND_FC1, LINEAR_KIND_FC2, LINEAR_KINDS };
enum fast_sums { FAST_SUMS_FORWARD, FAST_SUMS_ALL, FAST_SUMS_NONE };
// Operand of a linear layer's GEMM.
enum linear_role { ROLE_INPUT, ROLE_WEIGHT, ROLE_GRADIENT, LINEAR_ROLES };

// [precision]
struct precision_config {
    int64_t compute;      // enum compute_precision
    int64_t gradients;    // enum format of the accumulation buffer
    int64_t reduce;       // enum format of gradient reductions
    int64_t master;       // fp32 master weights in addition to bf16 weights
    int64_t moments;      // enum format of the Adam moments m and v
    int64_t fp8_recipe, fp8_history, fp8_margin, fp8_format, fp8_gemms, fp8_weight_gradients, fp8_fast_accumulation,
        fp8_weights, fp8_fused;
};
extern const struct option precision_options[];
extern const char *const   precision_compute_names[];

// Rate class of most GEMMs with this compute precision; MFU uses its peak.
enum rate precision_rate(int64_t compute);

// Format of each role, derived once.
struct precision {
    enum compute_precision compute;
    enum format            weight;    // as GEMMs read it
    enum format            activation;
    enum format            gradient;
    enum format            reduce;
    enum format            moment;
    bool                   has_master;    // separate fp32 master weights exist
    // Linear layers with low-precision GEMM operands:
    uint32_t            low_precision_linears;    // 1 << enum linear_kind; 0: none
    enum scaling_recipe recipe;
    enum format         low_precision_format[LINEAR_ROLES];
    float               low_precision_target[LINEAR_ROLES];    // value that the amax maps to under delayed scaling
    int64_t             magnitude_history;                     // length of the amax history in steps
    bool                has_low_precision_weight_gradients;
    bool           has_low_precision_weights;    // weights are stored and all-gathered in the format of ROLE_WEIGHT
    bool           fuses_copies;                 // producers write quantized tensors where a fused kernel exists
    enum fast_sums fast_sums;
};
status precision_init(struct precision *precision, const struct precision_config *config);

// Rate classes of all GEMMs of a step, as bits 1 << enum rate.
uint32_t precision_rates(const struct precision *precision);
