// SPDX-License-Identifier: MIT
// The [precision] options and the element type that each role of a step gets from them.
#include "gswbench/precision.h"

#include <math.h>

#include "gswbench/fp8.h"

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
static const char *const format_names[] = { [FP8_HYBRID] = "hybrid", [FP8_E4M3] = "e4m3", NULL };
static const char *const gemm_names[] = {
    [FP8_QKV] = "qkv", [FP8_PROJECTION] = "projection", [FP8_FC1] = "fc1", [FP8_FC2] = "fc2", NULL,
};
static const char *const fast_names[] = {
    [FP8_FAST_FORWARD] = "forward", [FP8_FAST_ALL] = "all", [FP8_FAST_NONE] = "none", NULL,
};

const struct option precision_options[] = {
    CHOICE_OPTION (precision_config, compute, "bf16", precision_compute_names, "type that GEMMs read; fp32 is a reference mode with fp32 everywhere"),
    CHOICE_OPTION (precision_config, gradients, "fp32", storage_names, "type that weight gradients are accumulated in"),
    CHOICE_OPTION (precision_config, reduce, "auto", reduce_names, "type that gradients are transferred in; auto: that of gradients"),
    BOOLEAN_OPTION(precision_config, master, "yes", "fp32 master weights beside bf16 ones"),
    CHOICE_OPTION (precision_config, moments, "fp32", storage_names, "type of the two moments of AdamW"),
    CHOICE_OPTION (precision_config, fp8_recipe, "delayed", recipe_names, "scaling with compute = fp8: from the history of a tensor, from its current values, or by blocks of 128"),
    INTEGER_OPTION(precision_config, fp8_history, "1024", 1, 1024, "steps of whose largest values delayed scaling takes the largest; 1: the most recent"),
    INTEGER_OPTION(precision_config, fp8_margin, "0", 0, 8, "with delayed scaling, powers of two between the largest value and the end of the format"),
    CHOICE_OPTION (precision_config, fp8_format, "hybrid", format_names, "hybrid: values and weights in E4M3, gradients in E5M2; e4m3: all"),
    SET_OPTION    (precision_config, fp8_gemms, "qkv, projection, fc1, fc2", gemm_names, "linears of a block, or of an expert, that compute = fp8 means"),
    BOOLEAN_OPTION(precision_config, fp8_weight_gradients, "yes", "their weight gradients, too, are products of FP8"),
    CHOICE_OPTION (precision_config, fp8_fast_accumulation, "forward", fast_names, "FP8 products whose partial sums a device may round to fewer digits"),
    BOOLEAN_OPTION(precision_config, fp8_parameters, "no", "with compute = fp8, weights are stored and gathered in FP8"),
    BOOLEAN_OPTION(precision_config, fp8_fused, "yes", "norms, activations and their gradients write FP8 themselves, where scales do not follow from a whole tensor"),
    END_OPTIONS
};
// clang-format on

static status init_fp8(struct precision *precision, const struct precision_config *config)
{
    precision->fp8_gemms   = (uint32_t)config->fp8_gemms;
    precision->fp8_recipe  = (enum fp8_recipe)config->fp8_recipe;
    precision->fp8_history = config->fp8_history;
    // Products of parts with factors of their own are added up in fp32.
    precision->fp8_fast =
        config->fp8_recipe == FP8_BLOCK ? FP8_FAST_NONE : (enum fp8_fast)config->fp8_fast_accumulation;
    precision->has_fp8_weight_gradients = config->fp8_weight_gradients;
    precision->has_fp8_weights          = config->fp8_parameters;
    precision->fuses_fp8                = config->fp8_fused;
    int margin                          = config->fp8_recipe == FP8_DELAYED ? (int)config->fp8_margin : 0;
    for (int role = 0; role < FP8_ROLES; role++) {
        bool is_wide                = role == FP8_GRADIENT && config->fp8_format == FP8_HYBRID;
        precision->fp8_format[role] = is_wide ? DTYPE_E5M2 : DTYPE_E4M3;
        precision->fp8_target[role] = ldexpf(fp8_largest(precision->fp8_format[role]), -margin);
    }
    if (config->fp8_gemms == 0) {
        return fail(
            "[precision] fp8_gemms = none leaves nothing to compute = fp8: name a linear, or set compute = bf16");
    }
    if (config->fp8_parameters && config->fp8_recipe == FP8_BLOCK) {
        return fail(
            "[precision] fp8_parameters = yes gathers a weight with one scale for all of it: it needs fp8_recipe "
            "= delayed or current, not block");
    }
    if (config->fp8_parameters && (config->fp8_gemms != (1 << FP8_GEMMS) - 1 || !config->master)) {
        return fail("[precision] fp8_parameters = yes stores every linear in FP8: it needs all of fp8_gemms (qkv, "
                    "projection, fc1, fc2), and master = yes for what FP8 cannot hold");
    }
    return OK;
}

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
    };
    if (config->compute == COMPUTE_FP8) {
        return init_fp8(precision, config);
    }
    if (config->compute == COMPUTE_BF16) {
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
