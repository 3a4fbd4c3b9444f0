// SPDX-License-Identifier: MIT
// Builds Hugging Face's config.json of a model, and compares a config.json with it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/plan_build.h"
#include "gswbench/text.h"
#include "internal.h"

static void set_text(json_t *json, const char *key, const char *value)
{
    json_object_set_new(json, key, json_string(value));
}

static void set_count(json_t *json, const char *key, int64_t value)
{
    json_object_set_new(json, key, json_integer(value));
}

// Adds the keys of latent attention. A missing q_lora_rank would mean DeepSeek-V3's value in transformers, so null is
// written.
static void describe_latent(json_t *json, const struct model_config *model)
{
    json_object_set_new(json, "q_lora_rank", model->q_rank > 0 ? json_integer(model->q_rank) : json_null());
    set_count(json, "kv_lora_rank", model->kv_rank);
    set_count(json, "qk_nope_head_dim", model->head_dim);
    set_count(json, "qk_rope_head_dim", model->rope_dim);
    set_count(json, "v_head_dim", model_value_dim(model));
    json_object_set_new(json, "rope_interleave", json_false());
}

// Adds the keys of DeepseekV3Config in transformers, and of DeepSeek's router. A router without groups has one group.
static void describe_deepseek(json_t *json, const struct model_config *model)
{
    bool has_groups = model->router_groups > 0;
    describe_latent(json, model);
    set_count(json, "first_k_dense_replace", layers_expert_layer(model, 0));
    set_count(json, "moe_layer_freq", 1);
    set_count(json, "n_routed_experts", model->experts);
    set_count(json, "n_shared_experts", model->shared_ffn / model_expert_ffn(model));
    set_count(json, "num_experts_per_tok", model->top_k);
    set_count(json, "moe_intermediate_size", model_expert_ffn(model));
    set_text(json, "scoring_func", "sigmoid");
    set_text(json, "topk_method", "noaux_tc");
    json_object_set_new(json, "norm_topk_prob", json_boolean(model->router_normalise != 0));
    json_object_set_new(json, "routed_scaling_factor", json_real(model->router_scale));
    set_count(json, "n_group", has_groups ? model->router_groups : 1);
    set_count(json, "topk_group", has_groups ? model->router_top_groups : 1);
    set_count(json, "num_nextn_predict_layers", model->predicted_tokens);
}

// Adds the keys of NemotronHConfig in transformers.
static void describe_mamba(json_t *json, const struct model_config *model)
{
    set_count(json, "mamba_num_heads", model->mamba_heads);
    set_count(json, "mamba_head_dim", model->mamba_head_dim);
    set_count(json, "ssm_state_size", model->mamba_state);
    set_count(json, "n_groups", model->mamba_groups);
    set_count(json, "conv_kernel", model->mamba_conv);
    set_count(json, "chunk_size", model->mamba_chunk);
}

// Adds keys for settings that Hugging Face has no keys for. Their names are gswbench's own.
static void describe_own(json_t *json, const struct model_config *model)
{
    json_object_set_new(json, "architectures", json_pack("[s]", "GswbenchForCausalLM"));
    set_text(json, "activation", model_activation_names[model->activation]);
    set_text(json, "norm", model_norm_names[model->norm]);
    set_text(json, "positions", model_position_names[model->positions]);
    json_object_set_new(json, "embedding_multiplier", json_real(model->embedding_scale));
    json_object_set_new(json, "logit_scale", json_real(model->logit_scale));
    json_object_set_new(json, "rope_fraction", json_real(model->rope_fraction));
    json_object_set_new(json, "qk_norm", json_boolean(model->qk_norm != 0));
    if (model->pattern[0] != '\0') {
        set_text(json, "layer_pattern", model->pattern);
    }
    if (model->window > 0) {
        set_count(json, "sliding_window", model->window);
    }
    json_object_set_new(json, "attention_sinks", json_boolean(model->attention_sinks != 0));
    if (model->kv_rank > 0) {
        describe_latent(json, model);
    }
    if (model->mamba_heads > 0) {
        describe_mamba(json, model);
    }
    if (model->experts > 0) {
        set_count(json, "num_local_experts", model->experts);
        set_count(json, "num_experts_per_tok", model->top_k);
        set_count(json, "expert_intermediate_size", model_expert_ffn(model));
        set_count(json, "shared_expert_intermediate_size", model->shared_ffn);
        set_count(json, "moe_latent_size", model->expert_hidden);
        set_text(json, "scoring_func", model_router_score_names[model->router_score]);
        set_text(json, "router_gates", model_router_gates_names[model->router_gates]);
        json_object_set_new(json, "norm_topk_prob", json_boolean(model->router_normalise != 0));
        json_object_set_new(json, "routed_scaling_factor", json_real(model->router_scale));
        json_object_set_new(json, "router_bias", json_boolean(model->router_offset != 0));
        set_count(json, "n_group", model->router_groups);
        set_count(json, "topk_group", model->router_top_groups);
    }
}

// Adds the keys that depend on the model family. Qwen3 needs norm_topk_prob, because it normalizes gates over the
// chosen experts.
static void describe_family(json_t *json, const struct model_config *model)
{
    const struct model_family *family = model_family_of(model);
    if (family == NULL) {
        describe_own(json, model);
    } else {
        json_object_set_new(json, "architectures", json_pack("[s]", family->architecture));
        set_text(json, "hidden_act", "silu");
    }
    if (family != NULL && family->has_latent_attention) {
        describe_deepseek(json, model);
    } else if (family != NULL && family->has_experts) {
        set_count(json, family->has_qk_norm ? "num_experts" : "num_local_experts", model->experts);
        set_count(json, "num_experts_per_tok", model->top_k);
        json_object_set_new(json, "router_aux_loss_coef", json_real(model->auxiliary_loss));
    }
    if (family != NULL && family->has_experts && family->has_qk_norm) {
        set_count(json, "moe_intermediate_size", model_expert_ffn(model));
        set_count(json, "decoder_sparse_step", 1);
        json_object_set_new(json, "mlp_only_layers", json_array());
        json_object_set_new(json, "norm_topk_prob", json_true());
    }
    if (family != NULL && family->has_qk_norm) {
        json_object_set_new(json, "use_sliding_window", json_false());
    }
    set_text(json, "model_type", model->family);
}

json_t *describe_model(const struct model_config *model, int64_t sequence, enum format format)
{
    const int64_t original_context = 8192;    // constant of Llama 3.1's RoPE scaling

    json_t *json    = json_object();
    int64_t context = model->positions == POSITIONS_LEARNED ? model->max_positions : sequence;
    describe_family(json, model);
    set_count(json, "vocab_size", model->vocab);
    set_count(json, "hidden_size", model->hidden);
    bool is_mixtral = strcmp(model->family, "mixtral") == 0;    // in Mixtral every MLP is an expert
    set_count(json, "intermediate_size", is_mixtral ? model_expert_ffn(model) : model->ffn);
    set_count(json, "num_hidden_layers", model->layers);
    set_count(json, "num_attention_heads", model->heads);
    set_count(json, "num_key_value_heads", model->kv_heads);
    set_count(json, "head_dim",
              model->kv_rank > 0 ? model->rope_dim
                                 // with latent attention, transformers expects the rotary width here
                                 : model->head_dim);
    json_object_set_new(json, "rms_norm_eps", json_real(model->norm_epsilon));
    json_object_set_new(json, "rope_theta", json_real(model->rope_theta));
    if (model->rope_scaling != 1) {
        json_object_set_new(json, "rope_scaling",
                            json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", model->rope_scaling,
                                      "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                                      "original_max_position_embeddings", (json_int_t)original_context));
        context = (int64_t)(model->rope_scaling * (double)original_context);
    }
    set_count(json, "max_position_embeddings", context);
    json_object_set_new(json, "attention_bias", json_boolean(model->attention_bias != 0));
    json_object_set_new(json, "mlp_bias", json_boolean(model->mlp_bias != 0));
    json_object_set_new(json, "tie_word_embeddings", json_boolean(model->tied != 0));
    set_text(json, "torch_dtype", format == FORMAT_BF16 ? "bfloat16" : "float32");
    return json;
}

// Returns whether a key may differ, because it does not change the computation, or is checked elsewhere.
static bool may_differ(const char *key)
{
    static const char *const free_keys[] = {"architectures",
                                            "torch_dtype",
                                            "rope_scaling",
                                            "max_position_embeddings",
                                            "router_aux_loss_coef",
                                            "original_max_position_embeddings",
                                            NULL};
    return text_index(key, free_keys) >= 0;
}

static bool are_equal(const json_t *a, const json_t *b)
{
    double x = json_number_value(a), y = json_number_value(b);
    return json_is_number(a) && json_is_number(b) ? fabs(x - y) <= 1e-9 * fabs(x) : json_equal(a, b) != 0;
}

static status report_difference(const char *path, const char *key, const json_t *expected, const json_t *found)
{
    char  *texts[] = {json_dumps(found, JSON_ENCODE_ANY), json_dumps(expected, JSON_ENCODE_ANY)};
    status result  = fail_as(EXIT_CHECKPOINT, "%.600s: %s is %.120s, but the job's model has %.120s", path, key,
                            texts[0] != NULL ? texts[0] : "null", texts[1] != NULL ? texts[1] : "null");
    free(texts[0]);
    free(texts[1]);
    return result;
}

// Compares the values of keys. A key that is missing in the file is not compared.
static status compare_keys(const char *path, const json_t *expected, const json_t *found)
{
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)expected, key, value)
    {
        const json_t *other = json_object_get(found, key);
        if (!may_differ(key) && other != NULL && !json_is_null(other) && !are_equal(value, other)) {
            return report_difference(path, key, value, other);
        }
    }
    return OK;
}

// Returns the settings of RoPE scaling, which newer versions of transformers have under "rope_parameters"; NULL: none.
static const json_t *find_scaling(const json_t *config)
{
    const json_t *scaling = json_object_get(config, "rope_scaling");
    scaling               = json_is_object(scaling) ? scaling : json_object_get(config, "rope_parameters");
    const char *type      = json_string_value(json_object_get(scaling, "rope_type"));
    bool        is_plain  = type != NULL && strcmp(type, "default") == 0;
    return json_is_object(scaling) && !is_plain ? scaling : NULL;
}

status describe_compare(const char *path, const json_t *expected, const json_t *found)
{
    const json_t *theta  = json_object_get(json_object_get(found, "rope_parameters"), "rope_theta");
    const json_t *wanted = find_scaling(expected), *scaling = find_scaling(found);
    TRY(compare_keys(path, expected, found));
    if (json_object_get(expected, "rope_interleave") != NULL && json_object_get(found, "rope_interleave") == NULL) {
        // if the file lacks the key, transformers uses true
        return report_difference(path, "rope_interleave", json_false(), json_true());
    }
    if (theta != NULL && !are_equal(json_object_get(expected, "rope_theta"), theta)) {
        return report_difference(path, "rope_theta", json_object_get(expected, "rope_theta"), theta);
    }
    if ((wanted == NULL) != (scaling == NULL)) {
        return report_difference(path, "rope_scaling", wanted, scaling);
    }
    return compare_keys(path, wanted, scaling);
}
