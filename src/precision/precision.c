// SPDX-License-Identifier: MIT
// The [precision] options and the element type that each role of a step gets from them.
#include "gswbench/precision.h"

// clang-format off
const char *const precision_compute_names[] = {
    [COMPUTE_FP32] = "fp32", [COMPUTE_BF16] = "bf16", [COMPUTE_FP8] = "fp8", NULL,
};
static const char *const storage_names[] = { [DTYPE_F32] = "fp32", [DTYPE_BF16] = "bf16", NULL };

enum { REDUCE_AUTO = DTYPE_BF16 + 1 };
static const char *const reduce_names[] = {
    [DTYPE_F32] = "fp32", [DTYPE_BF16] = "bf16", [REDUCE_AUTO] = "auto", NULL,
};
static const char *const recipe_names[] = {
    [FP8_DELAYED] = "delayed", [FP8_CURRENT] = "current", [FP8_BLOCK] = "block", NULL,
};

const struct option precision_options[] = {
    CHOICE_OPTION (precision_config, compute, "bf16", precision_compute_names, "type that GEMMs read; fp32 is a reference mode with fp32 everywhere"),
    CHOICE_OPTION (precision_config, gradients, "fp32", storage_names, "type that weight gradients are accumulated in"),
    CHOICE_OPTION (precision_config, reduce, "auto", reduce_names, "type that gradients are transferred in; auto: that of gradients"),
    BOOLEAN_OPTION(precision_config, master, "yes", "fp32 master weights beside bf16 ones"),
    CHOICE_OPTION (precision_config, moments, "fp32", storage_names, "type of the two moments of AdamW"),
    CHOICE_OPTION (precision_config, fp8_recipe, "delayed", recipe_names, "scaling with compute = fp8: from the history of a tensor, from its current values, or by blocks of 128"),
    INTEGER_OPTION(precision_config, fp8_history, "1024", 1, 65536, "steps whose largest value delayed scaling remembers"),
    BOOLEAN_OPTION(precision_config, fp8_parameters, "no", "with compute = fp8, weights are stored and gathered in FP8"),
    END_OPTIONS
};
// clang-format on

status precision_init(struct precision *precision, const struct precision_config *config)
{
    enum dtype gradient = (enum dtype)config->gradients;
    *precision          = (struct precision){
                 .weight     = DTYPE_BF16,
                 .activation = DTYPE_BF16,
                 .gradient   = gradient,
                 .reduce     = config->reduce == REDUCE_AUTO ? gradient : (enum dtype)config->reduce,
                 .moment     = (enum dtype)config->moments,
                 .has_master = config->master,
                 .has_fp8    = config->compute == COMPUTE_FP8,
    };
    if (config->compute != COMPUTE_FP32) {
        return OK;
    }
    if (gradient != DTYPE_F32 || precision->reduce != DTYPE_F32 || precision->moment != DTYPE_F32) {
        return fail("[precision] compute = fp32 is fp32 everywhere: gradients, reduce and moments cannot be bf16");
    }
    precision->weight     = DTYPE_F32;
    precision->activation = DTYPE_F32;
    precision->has_master = false;
    return OK;
}
