// SPDX-License-Identifier: MIT
// Model shapes: the [model] options, their rules, and parameter counts.
#include "gswbench/model.h"

#include <inttypes.h>
#include <string.h>

// clang-format off
const char *const model_activation_names[] = {
    [ACTIVATION_SWIGLU] = "swiglu", [ACTIVATION_GEGLU] = "geglu", [ACTIVATION_GELU] = "gelu",
    [ACTIVATION_RELU2]  = "relu2",  [ACTIVATION_COUNT] = NULL,
};
const char *const model_norm_names[] = {
    [NORM_RMS] = "rmsnorm", [NORM_LAYER] = "layernorm", [NORM_LAYER_1P] = "layernorm1p", [NORM_COUNT] = NULL,
};

// The upper limits keep every count of parameters inside 64 bits.
const struct option model_options[] = {
    TEXT_OPTION   (model_config, preset, "", "shape read first, from configs/models/NAME.ini"),
    TEXT_OPTION   (model_config, family, "gswbench", "names of exported tensors: llama, mixtral or gswbench"),
    INTEGER_OPTION(model_config, layers, "0", 0, 4096, "transformer blocks"),
    INTEGER_OPTION(model_config, hidden, "0", 0, 131072, "width of the residual stream"),
    INTEGER_OPTION(model_config, heads, "0", 0, 4096, "query heads"),
    INTEGER_OPTION(model_config, kv_heads, "0", 0, 4096, "key and value heads; fewer than heads is grouped-query attention"),
    INTEGER_OPTION(model_config, head_dim, "0", 0, 1024, "elements of a head"),
    INTEGER_OPTION(model_config, ffn, "0", 0, 1048576, "width of the MLP, of one expert where there are experts"),
    INTEGER_OPTION(model_config, vocab, "0", 0, 16777216, "tokens of the vocabulary, without padding"),
    INTEGER_OPTION(model_config, vocab_multiple, "1", 1, 65536, "the vocabulary is padded to a multiple of this times tp"),
    CHOICE_OPTION (model_config, activation, "swiglu", model_activation_names, "MLP activation; the gated ones have two input projections"),
    CHOICE_OPTION (model_config, norm, "rmsnorm", model_norm_names, "normalisation; layernorm1p stores its scale around zero"),
    REAL_OPTION   (model_config, norm_epsilon, "1e-5", 1e-12, 1e-1, "added to the variance before its root"),
    REAL_OPTION   (model_config, rope_theta, "10000", 1, 1e12, "base of the rotary position frequencies"),
    REAL_OPTION   (model_config, rope_fraction, "1", 0, 1, "share of each head that rotates"),
    REAL_OPTION   (model_config, rope_scaling, "1", 1, 1024, "Llama 3.1 factor by which low rotary frequencies are slowed; 1: none"),
    BOOLEAN_OPTION(model_config, tied, "no", "the output projection shares the embedding table"),
    INTEGER_OPTION(model_config, experts, "0", 0, 1024, "experts of each MLP; 0: dense"),
    INTEGER_OPTION(model_config, top_k, "0", 0, 1024, "experts that a token uses"),
    REAL_OPTION   (model_config, capacity_factor, "0", 0, 1024, "tokens an expert takes, as a multiple of its fair share, padded and dropped to it; 0: all that choose it"),
    REAL_OPTION   (model_config, auxiliary_loss, "0", 0, 1, "weight of the load-balancing loss of the router"),
    REAL_OPTION   (model_config, init_deviation, "0.02", 0, 1, "standard deviation of the initial weights"),
    END_OPTIONS
};
// clang-format on

static status check_sizes(const struct model_config *model)
{
    const struct {
        const char *key;
        int64_t     value;
    } sizes[] = {
        {"layers", model->layers},     {"hidden", model->hidden},     {"heads", model->heads},
        {"kv_heads", model->kv_heads}, {"head_dim", model->head_dim}, {"ffn", model->ffn},
        {"vocab", model->vocab},
    };
    status errors = OK;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].value < 1) {
            status_add(&errors, fail("[model] %s is not given: name a preset or set it", sizes[i].key));
        }
    }
    return errors;
}

static void check_attention(const struct model_config *model, status *errors)
{
    if (model->heads % model->kv_heads != 0) {
        status_add(errors, fail("[model] kv_heads = %" PRId64 " does not divide heads = %" PRId64, model->kv_heads,
                                model->heads));
    }
    double rotary = (double)model->head_dim * model->rope_fraction;
    if (rotary != (double)model_rotary_width(model) || model_rotary_width(model) % 2 != 0) {
        status_add(errors,
                   fail("[model] rope_fraction = %g of head_dim = %" PRId64 " is %g elements, not an even number",
                        model->rope_fraction, model->head_dim, rotary));
    }
}

static void check_experts(const struct model_config *model, status *errors)
{
    if (model->experts == 0 && (model->top_k != 0 || model->capacity_factor != 0.0 || model->auxiliary_loss != 0.0)) {
        status_add(errors, fail("[model] top_k, capacity_factor and auxiliary_loss need experts: set experts, or leave "
                                "them out"));
    }
    if (model->experts > 0 && (model->top_k < 1 || model->top_k > model->experts)) {
        status_add(errors, fail("[model] top_k = %" PRId64 " with experts = %" PRId64 ": allowed are 1 to %" PRId64,
                                model->top_k, model->experts, model->experts));
    }
}

// Readers of these families expect this block and no other.
static void check_family(const struct model_config *model, status *errors)
{
    bool is_llama   = strcmp(model->family, "llama") == 0;
    bool is_mixtral = strcmp(model->family, "mixtral") == 0;
    if (!is_llama && !is_mixtral) {
        if (strcmp(model->family, "gswbench") != 0) {
            status_add(errors, fail("[model] family = %s: allowed are llama, mixtral, gswbench", model->family));
        }
        return;
    }
    if (model->norm != NORM_RMS || model->activation != ACTIVATION_SWIGLU || model->rope_fraction != 1.0) {
        status_add(errors, fail("[model] family = %s needs norm = rmsnorm, activation = swiglu and rope_fraction = 1; "
                                "family = gswbench takes every shape",
                                model->family));
    }
    if (is_llama != (model->experts == 0)) {
        status_add(errors, fail("[model] family = %s %s: use family = %s", model->family,
                                is_llama ? "has no experts" : "needs experts", is_llama ? "mixtral" : "llama"));
    }
}

status model_check(const struct model_config *model)
{
    TRY(check_sizes(model));
    status errors = OK;
    check_attention(model, &errors);
    check_experts(model, &errors);
    check_family(model, &errors);
    return errors;
}

bool model_is_gated(const struct model_config *model)
{
    return model->activation == ACTIVATION_SWIGLU || model->activation == ACTIVATION_GEGLU;
}

bool model_norm_has_bias(const struct model_config *model)
{
    return model->norm != NORM_RMS;
}

int64_t model_query_width(const struct model_config *model)
{
    return model->heads * model->head_dim;
}

int64_t model_kv_width(const struct model_config *model)
{
    return model->kv_heads * model->head_dim;
}

int64_t model_rotary_width(const struct model_config *model)
{
    return (int64_t)((double)model->head_dim * model->rope_fraction);
}

int64_t model_padded_vocab(const struct model_config *model, int64_t tp)
{
    int64_t multiple = model->vocab_multiple * tp;
    return (model->vocab + multiple - 1) / multiple * multiple;
}

// All parameters when experts_used is experts. A dense model is one expert without a router.
static int64_t count_parameters(const struct model_config *model, int64_t experts_used)
{
    int64_t norm      = (model_norm_has_bias(model) ? 2 : 1) * model->hidden;
    int64_t attention = model->hidden * (2 * model_query_width(model) + 2 * model_kv_width(model));
    int64_t mlp       = (model_is_gated(model) ? 3 : 2) * model->hidden * model->ffn;
    int64_t experts   = model->experts == 0 ? mlp : experts_used * mlp + model->hidden * model->experts;
    int64_t embedding = (model->tied ? 1 : 2) * model->vocab * model->hidden;
    return model->layers * (2 * norm + attention + experts) + norm + embedding;
}

int64_t model_parameters(const struct model_config *model)
{
    return count_parameters(model, model->experts);
}

int64_t model_active_parameters(const struct model_config *model)
{
    return count_parameters(model, model->top_k);
}
