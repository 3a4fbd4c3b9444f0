// SPDX-License-Identifier: MIT
// Which element type each role of the step has.
#ifndef GSWBENCH_PRECISION_H
#define GSWBENCH_PRECISION_H

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
// What a tensor is to the linear that reads it.
enum linear_role { ROLE_INPUT, ROLE_WEIGHT, ROLE_GRADIENT, LINEAR_ROLES };

// [precision]
struct precision_config {
    int64_t compute;      // enum compute_precision
    int64_t gradients;    // enum format: accumulation buffer
    int64_t reduce;       // enum format: gradient transfers
    int64_t master;       // fp32 master weights beside bf16 ones
    int64_t moments;      // enum format: Adam's m and v
    int64_t fp8_recipe, fp8_history, fp8_margin, fp8_format, fp8_gemms, fp8_weight_gradients, fp8_fast_accumulation,
        fp8_weights, fp8_fused;
};
extern const struct option precision_options[];
extern const char *const   precision_compute_names[];

// The rate of most GEMMs of a step that computes so: the peak that the step is set against.
enum rate precision_rate(int64_t compute);

// The element type of each role, derived once.
struct precision {
    enum compute_precision compute;
    enum format            weight;    // as GEMMs read it
    enum format            activation;
    enum format            gradient;
    enum format            reduce;
    enum format            moment;
    bool                   has_master;    // a separate fp32 copy
    // Linears of the blocks that read their operands in a format narrower than the activations':
    uint32_t            narrow_linears;    // 1 << enum linear_kind; 0: none
    enum scaling_recipe recipe;
    enum format         narrow_format[LINEAR_ROLES];
    float               narrow_target[LINEAR_ROLES];    // what the largest magnitude becomes, scaled by history
    int64_t             magnitude_history;              // steps
    bool                has_narrow_weight_gradients;
    bool                has_narrow_weights;    // kept and gathered in that of ROLE_WEIGHT
    bool                fuses_copies;          // what makes a tensor makes its narrow copies, where it can
    enum fast_sums      fast_sums;
};
status precision_init(struct precision *precision, const struct precision_config *config);

// 1 << enum rate of every GEMM of a step.
uint32_t precision_rates(const struct precision *precision);

#endif
