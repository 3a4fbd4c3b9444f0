// SPDX-License-Identifier: MIT
// Checks [model]: rules for all models, for each layer kind, and for the families with published tensor names.
#include <inttypes.h>
#include <string.h>

#include "gswbench/plan_build.h"
#include "block.h"

static bool run_has(const struct layer_run *run, const struct layer_kind *kind)
{
    bool is_found = false;
    for (int32_t i = 0; i < run->count; i++) {
        is_found |= run->kinds[i] == kind;
    }
    return is_found;
}

// Returns the number of layers with experts. Sets *layer to the layer number of the index-th of them, if it exists.
static int64_t count_experts(const struct model_config *model, int64_t index, int64_t *layer)
{
    struct layer_pattern pattern;
    status               result = pattern_read(&pattern, model);
    int64_t              sparse = 0, first = 0;
    for (int i = 0; i <= pattern.count && !failed(&result); i++) {
        const struct layer_run *run = i < pattern.count ? &pattern.runs[i] : &pattern.prediction;
        if (run_has(run, &experts_kind)) {
            if (index >= sparse && index < sparse + run->layers) {
                *layer = first + index - sparse;
            }
            sparse += run->layers;
        }
        first += run->layers;
    }
    return sparse;
}

int64_t layers_with_experts(const struct model_config *model)
{
    int64_t layer;
    return count_experts(model, -1, &layer);
}

int64_t layers_expert_layer(const struct model_config *model, int64_t index)
{
    int64_t layer = -1;
    count_experts(model, index, &layer);
    return layer;
}

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
        status_add_if(&errors, sizes[i].value < 1, "[model] %s is missing: set it, or set preset", sizes[i].key);
    }
    return errors;
}

// Returns whether a layer or an MTP module has a sublayer of this kind. A pattern of letters can name kinds that only
// MTP modules have.
static bool is_used(const struct layer_pattern *pattern, const struct layer_kind *kind)
{
    bool is_found = pattern->prediction.layers > 0 && run_has(&pattern->prediction, kind);
    for (int run = 0; run < pattern->count; run++) {
        is_found |= run_has(&pattern->runs[run], kind);
    }
    return is_found;
}

// Runs the check of each layer kind that the model uses. Rejects options that only apply to unused kinds.
static void check_kinds(const struct model_config *model, const struct layer_pattern *pattern, status *errors)
{
    for (const struct layer_kind *const *kind = layer_kinds; *kind != NULL; kind++) {
        if ((*kind)->check != NULL && is_used(pattern, *kind)) {
            (*kind)->check(model, errors);
        }
    }
    const struct {
        const char *key;
        int64_t     value;
    } widths[] = {{"q_rank", model->q_rank}, {"rope_dim", model->rope_dim}, {"value_dim", model->value_dim}};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]) && model->kv_rank == 0; i++) {
        status_add_if(errors, widths[i].value > 0,
                      "[model] %s = %" PRId64 " applies to latent attention only: set kv_rank, or leave it out",
                      widths[i].key, widths[i].value);
    }
    status_add_if(errors, model->window > 0 && !is_used(pattern, &window_attention_kind),
                  "[model] window = %" PRId64
                  ", but pattern = %s has no window_attention: add it to pattern, or leave window out",
                  model->window, pattern_of(model));
    status_add_if(errors, model->mamba_heads > 0 && !is_used(pattern, &mamba_kind),
                  "[model] mamba_heads = %" PRId64
                  ", but pattern = %s has no mamba: add it to pattern, or leave mamba_heads out",
                  model->mamba_heads, pattern_of(model));
}

static void check_positions(const struct model_config *model, status *errors)
{
    bool is_learned = model->positions == POSITIONS_LEARNED;
    status_add_if(errors, is_learned && model->max_positions == 0,
                  "[model] positions = learned needs a table: set max_positions to its number of rows");
    status_add_if(errors, !is_learned && model->max_positions > 0,
                  "[model] max_positions = %" PRId64
                  " applies to learned positions only: set positions = learned, or leave it out",
                  model->max_positions);
    status_add_if(errors, is_learned && model->predicted_tokens > 0,
                  "[model] predicted_tokens = %" PRId64
                  ": MTP modules do not support positions = learned: change one of the two",
                  model->predicted_tokens);
    status_add_if(errors, model->kv_rank > 0 && model->positions != POSITIONS_ROTARY,
                  "[model] positions = %s: latent attention supports rotary only: set positions = rotary",
                  model_position_names[model->positions]);
}

static void check_experts(const struct model_config *model, int64_t sparse, status *errors)
{
    bool is_routed = model->router_score != ROUTER_SOFTMAX || model->router_groups != 0 ||
                     model->router_bias_rate != 0.0 || model->router_offset || model->router_gates != GATES_OUTPUT;
    bool is_described = is_routed || model->top_k != 0 || model->shared_ffn != 0 || model->capacity_factor != 0.0 ||
                        model->auxiliary_loss != 0.0;
    bool is_sized = model->expert_ffn != 0 || model->expert_hidden != 0;
    status_add_if(errors, model->experts == 0 && sparse == 0 && (is_described || is_sized),
                  "[model] %s need experts: set experts, or leave them out",
                  is_described ? "top_k, shared_ffn, router options, capacity_factor and auxiliary_loss"
                               : "expert_ffn and expert_hidden");
    status_add_if(errors, model->repeat_prediction != 0 && model->predicted_tokens == 0,
                  "[model] repeat_prediction = yes needs MTP modules: set predicted_tokens, or leave it out");
    status_add_if(errors, model->experts > 0 && sparse == 0,
                  "[model] experts = %" PRId64
                  ", but pattern = %s has no experts layer: add experts to pattern, or leave experts out",
                  model->experts, model->pattern);
}

// Returns whether a layer or an MTP module has a matrix of this kind that adapters support.
static bool has_target(const struct model_config *model, const struct layer_pattern *pattern, enum linear_kind kind)
{
    struct model_config only = *model;
    int64_t             sum  = 0;
    only.adapters.targets    = 1 << kind;
    for (int i = 0; i <= pattern->count; i++) {
        const struct layer_run *run = i < pattern->count ? &pattern->runs[i] : &pattern->prediction;
        for (int32_t j = 0; j < run->count && run->layers > 0; j++) {
            sum += run->kinds[j]->count(&only).adapters;
        }
    }
    return sum > 0;
}

static void check_adapters(const struct model_config *model, const struct layer_pattern *pattern, status *errors)
{
    static const char *const needed[LINEAR_KINDS] = {[LINEAR_KIND_QKV]        = "attention other than latent attention",
                                                     [LINEAR_KIND_PROJECTION] = "attention",
                                                     [LINEAR_KIND_FC1]        = "a dense MLP or shared experts",
                                                     [LINEAR_KIND_FC2]        = "a dense MLP or shared experts"};
    status_add_if(errors, model_is_frozen(model) && model->adapters.targets == 0,
                  "[adapters] targets = none with rank = %" PRId64 " trains nothing: name some, or set rank = 0",
                  model->adapters.rank);
    status_add_if(errors, model_is_frozen(model) && is_used(pattern, &mamba_kind),
                  "this version does not support adapters of models with Mamba-2 layers ([adapters] rank = %" PRId64
                  " with [model] pattern = %s): set rank = 0",
                  model->adapters.rank, pattern_of(model));
    for (int kind = 0; kind < LINEAR_KINDS; kind++) {
        bool is_targeted = model_adapts(model, (enum linear_kind)kind);
        status_add_if(errors, is_targeted && !has_target(model, pattern, (enum linear_kind)kind),
                      "[adapters] targets has %s, but no layer of [model] pattern = %s has %s: remove %s from targets",
                      linear_kind_names[kind], pattern_of(model), needed[kind], linear_kind_names[kind]);
    }
}

// Returns the name of the model family that matches these two properties.
static const char *family_with(bool has_experts, bool has_qk_norm)
{
    const struct model_family *family = model_families;
    while (family->has_experts != has_experts || family->has_qk_norm != has_qk_norm) {
        family++;
    }
    return family->name;
}

// Checks family = deepseek_v3: the model must be one that transformers' modeling_deepseek_v3.py computes without YaRN.
static void check_deepseek(const struct model_config *model, int64_t sparse, status *errors)
{
    int64_t shared = model->shared_ffn;
    bool    ends_with_experts =
        sparse > 0 && layers_expert_layer(model, 0) + sparse == model->layers + model->predicted_tokens;
    const struct {
        bool        is_met;
        const char *needed;
    } rules[] = {
        {model->kv_rank > 0, "latent attention (kv_rank)"},
        {model->latent_norm_epsilon == 1e-6, "latent_norm_epsilon = 1e-6"},
        {model->norm == NORM_RMS && model->activation == ACTIVATION_SWIGLU, "norm = rmsnorm and activation = swiglu"},
        {model->rope_scaling == 1.0, "rope_scaling = 1"},
        {model->embedding_scale == 1.0 && model->logit_scale == 1.0, "embedding_scale = 1 and logit_scale = 1"},
        {!model->mlp_bias && !model->router_offset, "mlp_bias = no and router_offset = no"},
        {model->mamba_heads == 0, "no Mamba-2 layers (mamba_heads)"},
        {ends_with_experts, "experts in all layers after the first dense ones (pattern = 3 x dense, experts)"},
        {model->router_score == ROUTER_SIGMOID && model->router_gates == GATES_OUTPUT,
         "router_score = sigmoid and router_gates = output"},
        {shared > 0 && shared % model_expert_ffn(model) == 0, "shared_ffn = a multiple of expert_ffn"},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        status_add_if(errors, !rules[i].is_met, "[model] family = %s needs %s; family = gswbench supports every shape",
                      model->family, rules[i].needed);
    }
}

// Checks all families except deepseek_v3. In these families all layers have the same sublayers; "gswbench" is no family
// and supports every shape.
static void check_family(const struct model_config *model, int64_t sparse, status *errors)
{
    const struct model_family *family  = model_family_of(model);
    bool                       qk_norm = model->qk_norm != 0;
    if (family == NULL) {
        status_add_if(errors, strcmp(model->family, "gswbench") != 0,
                      "[model] family = %s: expected llama, mixtral, qwen3, qwen3_moe, deepseek_v3 or gswbench",
                      model->family);
        return;
    }
    bool is_plain = model->router_score == ROUTER_SOFTMAX && model->router_normalise && model->router_scale == 1.0 &&
                    model->router_groups == 0 && model->router_bias_rate == 0.0 && model->router_gates == GATES_OUTPUT;
    const struct {
        bool        is_broken;
        const char *text;
    } rules[] = {
        {model->norm != NORM_RMS || model->activation != ACTIVATION_SWIGLU || model->rope_fraction != 1.0 ||
             model->positions != POSITIONS_ROTARY,
         "needs norm = rmsnorm, activation = swiglu, positions = rotary and rope_fraction = 1; family = gswbench "
         "supports every shape"},
        {model->window > 0 || model->attention_sinks || model->attention_bias || model->mlp_bias ||
             model->router_offset,
         "supports no windows, sinks or biases (window, attention_sinks, attention_bias, mlp_bias, router_offset): use "
         "family = gswbench"},
        {model->embedding_scale != 1.0 || model->logit_scale != 1.0,
         "supports no scaled embeddings or logits (embedding_scale, logit_scale): use family = gswbench"},
        {model->kv_rank > 0, "has no latent attention (kv_rank): use family = gswbench"},
        {model->mamba_heads > 0, "has no Mamba-2 layers (mamba_heads): use family = gswbench"},
        {model->predicted_tokens > 0, "supports no MTP modules (predicted_tokens): use family = gswbench"},
        {model->shared_ffn > 0, "has no shared experts (shared_ffn): use family = gswbench"},
        {family->has_experts && !is_plain, "needs a router with a softmax over the top_k logits, without groups or "
                                           "bias: leave out other router options, or use family = gswbench"},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        status_add_if(errors, rules[i].is_broken, "[model] family = %s %s", model->family, rules[i].text);
    }
    if (sparse > 0 && sparse < model->layers) {
        status_add(errors, fail("[model] family = %s needs layers of one kind: use family = gswbench", model->family));
    } else if (family->has_experts != (sparse > 0)) {
        status_add(errors,
                   fail("[model] family = %s %s: use family = %s", model->family,
                        family->has_experts ? "needs experts" : "has no experts", family_with(sparse > 0, qk_norm)));
    } else if (family->has_qk_norm != qk_norm) {
        status_add(errors, fail("[model] family = %s %s: use family = %s", model->family,
                                family->has_qk_norm ? "needs qk_norm = yes" : "has no qk_norm",
                                family_with(family->has_experts, qk_norm)));
    }
}

#define LATENT_OWNER  &latent_kind, "latent attention", "set [model] kv_rank"
#define EXPERTS_OWNER &experts_kind, "experts", "set [model] experts"

static status check_saved(const struct model_config *model, const struct train_config *train)
{
    const int64_t saved = train->recompute_save, modules = train->recompute_modules;
    const struct {
        bool                     is_named;
        enum recompute           policy;
        const char              *option, *name;
        const struct layer_kind *kind;
        const char              *owner, *remedy;
    } owned[] = {
        {saved >> OUTPUT_LATENT & 1, RECOMPUTE_SELECTIVE, "save", "latent", LATENT_OWNER},
        {saved >> OUTPUT_DISPATCH & 1, RECOMPUTE_SELECTIVE, "save", "dispatch", EXPERTS_OWNER},
        {modules >> MODULE_UP_PROJECTIONS & 1, RECOMPUTE_MODULES, "modules", "mla_up_proj", LATENT_OWNER},
        {modules >> MODULE_MLP & 1, RECOMPUTE_MODULES, "modules", "mlp", &mlp_kind, "a dense MLP",
         "write dense for some layers"},
        {modules >> MODULE_EXPERTS & 1, RECOMPUTE_MODULES, "modules", "moe", EXPERTS_OWNER},
        {modules >> MODULE_EXPERT_ACTIVATION & 1, RECOMPUTE_MODULES, "modules", "moe_act", EXPERTS_OWNER},
        {modules >> MODULE_SHARED_EXPERTS & 1, RECOMPUTE_MODULES, "modules", "shared_experts", EXPERTS_OWNER},
    };
    struct layer_pattern pattern;
    status               read = pattern_read(&pattern, model), errors = OK;
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]) && !failed(&read); i++) {
        // This loop is skipped if the pattern is invalid, which layers_check reports.
        status_add_if(
            &errors, owned[i].is_named && train->recompute == owned[i].policy && !is_used(&pattern, owned[i].kind),
            "[train] recompute_%s has %s, but no layer of [model] pattern = %s has %s: remove %s, or %s",
            owned[i].option, owned[i].name, pattern_of(model), owned[i].owner, owned[i].name, owned[i].remedy);
    }
    return errors;
}

status layers_check_train(const struct model_config *model, const struct train_config *train)
{
    status errors = check_saved(model, train);
    status_add_if(
        &errors,
        model->positions == POSITIONS_LEARNED && train->sequence > model->max_positions && model->max_positions > 0,
        "[train] sequence = %" PRId64 " is longer than the table of learned positions, [model] max_positions = %" PRId64
        ": change one of them",
        train->sequence, model->max_positions);
    return errors;
}

status layers_check(const struct model_config *model)
{
    status               errors = OK;
    struct layer_pattern pattern;
    TRY(check_sizes(model));
    TRY(pattern_read(&pattern, model));
    int64_t sparse = layers_with_experts(model);
    check_kinds(model, &pattern, &errors);
    check_positions(model, &errors);
    check_experts(model, sparse, &errors);
    check_adapters(model, &pattern, &errors);
    const struct model_family *family = model_family_of(model);
    if (family != NULL && family->has_latent_attention) {
        check_deepseek(model, sparse, &errors);
    } else {
        check_family(model, sparse, &errors);
    }
    return errors;
}
