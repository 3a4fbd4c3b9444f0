// SPDX-License-Identifier: MIT
// Declares the [precision] options, and derives the format of each tensor role from them.
#include "gswbench/model.h"

#include <math.h>

#include "gswbench/fp8.h"

// clang-format off
const char *const precision_compute_names[] = {
    [COMPUTE_FP32] = "fp32", [COMPUTE_BF16] = "bf16", [COMPUTE_FP8] = "fp8", [COMPUTE_FP4] = "fp4", NULL,
};
static const char *const storage_names[] = { [FORMAT_F32] = "fp32", [FORMAT_BF16] = "bf16", NULL };

enum { REDUCE_AUTO = FORMAT_BF16 + 1 };
static const char *const reduce_names[] = {
    [FORMAT_F32] = "fp32", [FORMAT_BF16] = "bf16", [REDUCE_AUTO] = "auto", NULL,
};
static const char *const recipe_names[] = {
    [RECIPE_DELAYED] = "delayed", [RECIPE_CURRENT] = "current", [RECIPE_BLOCK] = "block", [RECIPE_MXFP8] = "mxfp8",
    [RECIPE_ROWS] = "rows", [RECIPE_NVFP4] = "nvfp4", [RECIPE_AUTO] = "auto", NULL,
};
static const char *const format_names[] = { [FP8_HYBRID] = "hybrid", [FP8_E4M3] = "e4m3", NULL };
const char *const linear_kind_names[] = {
    [LINEAR_KIND_QKV] = "qkv", [LINEAR_KIND_PROJECTION] = "projection", [LINEAR_KIND_FC1] = "fc1", [LINEAR_KIND_FC2] = "fc2", NULL,
};
static const char *const fast_names[] = {
    [FAST_SUMS_FORWARD] = "forward", [FAST_SUMS_ALL] = "all", [FAST_SUMS_NONE] = "none", NULL,
};

const struct option precision_options[] = {
    CHOICE_OPTION (precision_config, compute, "bf16", precision_compute_names, "type of GEMM inputs; fp32 is a reference mode with fp32 everywhere"),
    CHOICE_OPTION (precision_config, gradients, "fp32", storage_names, "type in which weight gradients are accumulated"),
    CHOICE_OPTION (precision_config, reduce, "auto", reduce_names, "type in which gradients are reduced across ranks; auto: as gradients"),
    BOOLEAN_OPTION(precision_config, master, "yes", "fp32 master weights in addition to bf16 weights"),
    CHOICE_OPTION (precision_config, moments, "fp32", storage_names, "type of AdamW's moments"),
    CHOICE_OPTION (precision_config, recipe, "auto", recipe_names, "formats and scales of linears. compute = fp8: scales from the amax history (delayed), from the tensor's amax (current), per 128-element block (block), per 32-element block, powers of two (mxfp8), or per row, powers of two (rows, not supported on devices in this version); compute = fp4: E2M1 with an E4M3 scale per 16-element block and a scale of the tensor (nvfp4). auto: delayed or nvfp4. Earlier name: fp8_recipe"),
    INTEGER_OPTION(precision_config, fp8_history, "1024", 1, 1024, "delayed scaling: length of the amax history in steps; 1: the most recent step"),
    INTEGER_OPTION(precision_config, fp8_margin, "0", 0, 8, "delayed scaling: powers of two between amax and the largest value of the format"),
    CHOICE_OPTION (precision_config, fp8_format, "hybrid", format_names, "hybrid: activations and weights in E4M3, gradients in E5M2; e4m3: all in E4M3"),
    SET_OPTION    (precision_config, fp8_gemms, "qkv, projection, fc1, fc2", linear_kind_names, "compute = fp8 or fp4: linears of a block or expert whose GEMMs read these formats"),
    BOOLEAN_OPTION(precision_config, fp8_weight_gradients, "yes", "the weight-gradient GEMMs of these linears also read FP8 or FP4"),
    CHOICE_OPTION (precision_config, fp8_fast_accumulation, "forward", fast_names, "FP8 GEMMs that may accumulate with fewer bits than fp32"),
    BOOLEAN_OPTION(precision_config, fp8_weights, "no", "store the weights of linears in the format that their GEMMs read. Needs compute = fp8 and recipe = delayed or current; the frozen weights of [adapters], which are quantized once, may have any recipe without fsdp"),
    BOOLEAN_OPTION(precision_config, fp8_fused, "yes", "norms, activations and their gradients write FP8 directly, and compute the scale if it depends on these values only; AdamW computes the scales of weights"),
    BOOLEAN_OPTION(precision_config, fp4_square_weights, "yes", "recipe = nvfp4: weights share a scale in blocks of 16 x 16, so that both copies have the same values; no: of 1 x 16"),
    BOOLEAN_OPTION(precision_config, fp4_stochastic_rounding, "yes", "recipe = nvfp4: gradients of outputs are rounded up or down at random"),
    BOOLEAN_OPTION(precision_config, fp4_transform, "yes", "recipe = nvfp4: a random 16 x 16 Hadamard transform of both operands of weight gradients"),
    INTEGER_OPTION(precision_config, bf16_last_layers, "0", 0, 65536, "compute = fp8 or fp4: layers at the end of the model whose linears stay in BF16"),
    BOOLEAN_OPTION(precision_config, bf16_prediction, "no", "compute = fp8 or fp4: the linears of MTP modules stay in BF16, as they do with bf16_last_layers"),
    END_OPTIONS
};
// clang-format on

enum rate precision_rate(int64_t compute)
{
    static const enum format formats[] = {[COMPUTE_FP32] = FORMAT_F32,
                                          [COMPUTE_BF16] = FORMAT_BF16,
                                          [COMPUTE_FP8]  = FORMAT_E4M3,
                                          [COMPUTE_FP4]  = FORMAT_NVFP4};
    return format_table[formats[compute]].rate;
}

uint32_t precision_rates(const struct precision *precision)
{
    uint32_t rates = 1u << format_table[precision->activation].rate;
    for (int role = 0; role < LINEAR_ROLES && precision->low_precision_linears != 0; role++) {
        rates |= 1u << format_table[precision->low_precision_format[role]].rate;
    }
    return rates;
}

bool precision_covers(const struct precision *precision, int64_t layers, int64_t layer)
{
    return precision->low_precision_linears != 0 &&
           (layer < layers ? layer < layers - precision->last_layers
                           : precision->last_layers == 0 && !precision->keeps_prediction);
}

// Sets E2M1 for all GEMM operands, and the other fields of NVFP4, such as stochastic rounding of gradients.
static void init_nvfp4(struct precision *precision, const struct precision_config *config)
{
    for (int role = 0; role < LINEAR_ROLES; role++) {
        precision->low_precision_format[role] = FORMAT_E2M1;
    }
    precision->fuses_copies                    = false;
    precision->scales_squares                  = config->fp4_square_weights;
    precision->rounds_gradients_stochastically = config->fp4_stochastic_rounding;
    precision->transforms                      = config->fp4_transform;
}

static status check_recipe(const struct precision_config *config)
{
    bool is_fp4 = config->recipe == RECIPE_NVFP4;
    if (is_fp4 != (config->compute == COMPUTE_FP4) && config->recipe != RECIPE_AUTO &&
        (is_fp4 || config->compute == COMPUTE_FP4)) {
        return fail("[precision] recipe = %s multiplies in %s: set compute = %s, or recipe = auto",
                    recipe_names[config->recipe], is_fp4 ? "FP4" : "FP8", is_fp4 ? "fp4" : "fp8");
    }
    return OK;
}

static status init_low_precision(struct precision *precision, const struct precision_config *config)
{
    precision->low_precision_linears = (uint32_t)config->fp8_gemms;
    precision->recipe                = config->recipe != RECIPE_AUTO    ? (enum scaling_recipe)config->recipe
                                       : config->compute == COMPUTE_FP4 ? RECIPE_NVFP4
                                                                        : RECIPE_DELAYED;
    precision->magnitude_history     = config->fp8_history;
    precision->last_layers           = config->bf16_last_layers;
    precision->keeps_prediction      = config->bf16_prediction != 0;
    // With block scaling, GEMMs always add the scaled partial sums in fp32.
    bool has_parts =
        precision->recipe == RECIPE_BLOCK || precision->recipe == RECIPE_MXFP8 || precision->recipe == RECIPE_NVFP4;
    precision->fast_sums = has_parts ? FAST_SUMS_NONE : (enum fast_sums)config->fp8_fast_accumulation;
    precision->has_low_precision_weight_gradients = config->fp8_weight_gradients;
    precision->has_low_precision_weights          = config->fp8_weights;
    precision->fuses_copies                       = config->fp8_fused;
    int margin                                    = precision->recipe == RECIPE_DELAYED ? (int)config->fp8_margin : 0;
    for (int role = 0; role < LINEAR_ROLES; role++) {
        bool is_wide                          = role == ROLE_GRADIENT && config->fp8_format == FP8_HYBRID;
        precision->low_precision_format[role] = is_wide ? FORMAT_E5M2 : FORMAT_E4M3;
        precision->low_precision_target[role] = ldexpf(fp8_largest(precision->low_precision_format[role]), -margin);
    }
    if (precision->recipe == RECIPE_NVFP4) {
        init_nvfp4(precision, config);
    }
    if (config->fp8_gemms == 0) {
        return fail("[precision] fp8_gemms = none with compute = %s runs no GEMM in %s: add a linear, or set compute = "
                    "bf16",
                    precision_compute_names[config->compute], config->compute == COMPUTE_FP4 ? "FP4" : "FP8");
    }
    if (config->fp8_weights && (config->fp8_gemms != (1 << LINEAR_KINDS) - 1 || !config->master ||
                                config->bf16_last_layers > 0 || config->bf16_prediction)) {
        return fail("[precision] fp8_weights = yes stores every linear in FP8: it needs fp8_gemms = qkv, projection, "
                    "fc1, fc2, bf16_last_layers = 0, bf16_prediction = no and master = yes");
    }
    return OK;
}

status precision_check_weights(const struct precision *precision, bool is_frozen)
{
    bool has_one = precision->recipe == RECIPE_DELAYED || precision->recipe == RECIPE_CURRENT;
    if (precision->has_low_precision_weights && !is_frozen && !has_one) {
        return fail("[precision] fp8_weights = yes gathers weights with one scale per tensor: it needs recipe = "
                    "delayed or current, not %s",
                    recipe_names[precision->recipe]);
    }
    return OK;
}

status precision_init(struct precision *precision, const struct precision_config *config)
{
    enum format gradient = (enum format)config->gradients;
    *precision           = (struct precision){
                  .compute    = (enum compute_precision)config->compute,
                  .weight     = FORMAT_BF16,
                  .activation = FORMAT_BF16,
                  .gradient   = gradient,
                  .reduce     = config->reduce == REDUCE_AUTO ? gradient : (enum format)config->reduce,
                  .moment     = (enum format)config->moments,
                  .has_master = config->master,
    };
    TRY(check_recipe(config));
    if (config->compute == COMPUTE_FP8 || config->compute == COMPUTE_FP4) {
        return init_low_precision(precision, config);
    }
    if (config->compute == COMPUTE_BF16) {
        return OK;
    }
    if (gradient != FORMAT_F32 || precision->reduce != FORMAT_F32 || precision->moment != FORMAT_F32) {
        return fail("[precision] compute = fp32 is fp32 everywhere: gradients, reduce and moments cannot be bf16");
    }
    if (config->fp8_weights) {
        return fail("[precision] compute = fp32 is fp32 everywhere: fp8_weights = yes would store weights in FP8 "
                    "(set fp8_weights = no, or compute = fp8)");
    }
    precision->weight     = FORMAT_F32;
    precision->activation = FORMAT_F32;
    precision->has_master = false;
    return OK;
}
