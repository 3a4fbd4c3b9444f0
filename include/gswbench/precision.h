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

// [precision]
struct precision_config {
    int64_t compute;      // enum compute_precision
    int64_t gradients;    // enum dtype: accumulation buffer
    int64_t reduce;       // enum dtype: gradient transfers
    int64_t master;       // fp32 master weights beside bf16 ones
    int64_t moments;      // enum dtype: Adam's m and v
    int64_t fp8_recipe, fp8_history, fp8_parameters;
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
    bool       has_fp8;       // the linears of the blocks read their operands in FP8
};
status precision_init(struct precision *precision, const struct precision_config *config);

#endif
