// SPDX-License-Identifier: MIT
// Which element type each role of the step has.
#ifndef GSWBENCH_PRECISION_H
#define GSWBENCH_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/dtype.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

enum compute_precision { COMPUTE_FP32, COMPUTE_BF16, COMPUTE_FP8 };
enum fp8_recipe { FP8_DELAYED, FP8_CURRENT, FP8_BLOCK };
enum fp8_format { FP8_HYBRID, FP8_E4M3 };
enum fp8_gemm { FP8_QKV, FP8_PROJECTION, FP8_FC1, FP8_FC2, FP8_GEMMS };
enum fp8_fast { FP8_FAST_FORWARD, FP8_FAST_ALL, FP8_FAST_NONE };
// What a tensor is to the linear that reads it.
enum fp8_role { FP8_INPUT, FP8_WEIGHT, FP8_GRADIENT, FP8_ROLES };

// [precision]
struct precision_config {
    int64_t compute;      // enum compute_precision
    int64_t gradients;    // enum dtype: accumulation buffer
    int64_t reduce;       // enum dtype: gradient transfers
    int64_t master;       // fp32 master weights beside bf16 ones
    int64_t moments;      // enum dtype: Adam's m and v
    int64_t fp8_recipe, fp8_history, fp8_margin, fp8_format, fp8_gemms, fp8_weight_gradients, fp8_fast_accumulation,
        fp8_parameters, fp8_fused;
};
extern const struct option precision_options[];
extern const char *const   precision_compute_names[];

// The element type of each role, derived once.
struct precision {
    enum dtype weight;    // as GEMMs read it
    enum dtype activation;
    enum dtype gradient;
    enum dtype reduce;
    enum dtype moment;
    bool       has_master;    // a separate fp32 copy
    // Linears of the blocks that read their operands in FP8:
    uint32_t        fp8_gemms;    // 1 << enum fp8_gemm; 0: none
    enum fp8_recipe fp8_recipe;
    enum dtype      fp8_format[FP8_ROLES];
    float           fp8_target[FP8_ROLES];    // what the largest magnitude becomes, scaled by history
    int64_t         fp8_history;
    bool            has_fp8_weight_gradients;
    bool            has_fp8_weights;    // kept and gathered as FP8
    bool            fuses_fp8;          // what makes a tensor makes its copies in FP8, where it can
    enum fp8_fast   fp8_fast;
};
status precision_init(struct precision *precision, const struct precision_config *config);

#endif
