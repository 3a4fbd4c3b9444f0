// SPDX-License-Identifier: MIT
// Model FLOPs by convention, and what the published table of a system counted and reported.
#include <math.h>

#include "gswbench/model.h"

// clang-format off
const char *const model_flop_names[] = {
    [FLOPS_PUBLISHED] = "published", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "6n",
    [FLOPS_HARDWARE]  = "hardware",  [FLOPS_COUNT] = NULL,
};

// The conventions that a table can have used, at the places of enum flop_convention.
static const char *const convention_names[] = {
    [FLOPS_PUBLISHED] = "none", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "6n", NULL,
};

const struct option published_options[] = {
    TEXT_OPTION   (published_config, source, "", "where the figures were published"),
    CHOICE_OPTION (published_config, convention, "none", convention_names, "how its table counts model FLOPs"),
    INTEGER_OPTION(published_config, flop_kv_heads, "0", 0, 4096, "key and value heads that its table counts; 0: the model's"),
    INTEGER_OPTION(published_config, flop_digits, "0", 0, 15, "significant digits that its FLOPs per sequence are rounded to; 0: exact"),
    BOOLEAN_OPTION(published_config, count_embedding, "yes", "6n: N includes the input embedding"),
    REAL_OPTION   (published_config, peak_bf16, "0", 0, 1e18, "BF16 FLOP/s of a device that its MFU is against; 0: none"),
    REAL_OPTION   (published_config, peak_fp8, "0", 0, 1e18, "FP8 FLOP/s of a device that its MFU is against; 0: none"),
    REAL_OPTION   (published_config, step_seconds, "0", 0, 1e9, "published step time in seconds; 0: not published"),
    REAL_OPTION   (published_config, mfu_percent, "0", 0, 100, "published MFU in percent; 0: not published"),
    END_OPTIONS
};
// clang-format on

// Two operations a multiply-add, three times forward for forward and backward, of the given share of the square.
static double attention_flops(const struct model_config *model, double square, int64_t sequence)
{
    double keys = square * (double)sequence;
    return 12.0 * (double)model->layers * (double)model_query_width(model) * keys * (double)sequence;
}

// GEMMs of every layer and of the output projection, and attention, counted alike. Embedding, norms and activations are
// not counted.
static double matrix_flops(const struct model_config *model, double square, int64_t sequence)
{
    double hidden    = (double)model->hidden;
    double query     = (double)model_query_width(model);
    double kv        = (double)model_kv_width(model);
    double mlp       = (model_is_gated(model) ? 18.0 : 12.0) * (double)(model->experts == 0 ? 1 : model->top_k);
    double per_layer = 12.0 * hidden * (query + kv) + mlp * hidden * (double)model->ffn;
    return (double)sequence * ((double)model->layers * per_layer + 6.0 * (double)model->vocab * hidden) +
           attention_flops(model, square, sequence);
}

// A tied table is a projection too and always counts.
static double six_n_flops(const struct model_config *model, bool count_embedding, int64_t sequence)
{
    int64_t parameters = model_active_parameters(model);
    if (!count_embedding && !model->tied) {
        parameters -= model->vocab * model->hidden;
    }
    return 6.0 * (double)parameters * (double)sequence + attention_flops(model, 1.0, sequence);
}

static double round_digits(double value, int64_t digits)
{
    double unit = pow(10.0, floor(log10(value)) + 1.0 - (double)digits);
    return round(value / unit) * unit;
}

static double published_flops(const struct model_config *model, const struct published_config *published,
                              int64_t sequence)
{
    if (published->convention == FLOPS_PUBLISHED) {
        return NAN;
    }
    struct model_config counted = *model;
    if (published->flop_kv_heads > 0) {
        counted.kv_heads = published->flop_kv_heads;
    }
    double flops = model_flops(&counted, published, (enum flop_convention)published->convention, sequence);
    return published->flop_digits == 0 ? flops : round_digits(flops, published->flop_digits);
}

double model_flops(const struct model_config *model, const struct published_config *published,
                   enum flop_convention convention, int64_t sequence)
{
    switch (convention) {
    case FLOPS_PUBLISHED:
        return published_flops(model, published, sequence);
    case FLOPS_FULL:
        return matrix_flops(model, 1.0, sequence);
    case FLOPS_CAUSAL:
        return matrix_flops(model, 0.5, sequence);
    case FLOPS_6N:
        return six_n_flops(model, published->count_embedding, sequence);
    default:
        return NAN;
    }
}

double model_attention_share(const struct model_config *model, const struct published_config *published,
                             enum flop_convention convention, int64_t sequence)
{
    int64_t counted = convention == FLOPS_PUBLISHED ? published->convention : convention;
    return attention_flops(model, counted == FLOPS_CAUSAL ? 0.5 : 1.0, sequence) /
           model_flops(model, published, convention, sequence);
}
