// SPDX-License-Identifier: MIT
// config.json of a Hugging Face folder, which other programs need to read the weights.
#include "gswbench/checkpoint.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "small_checkpoint.h"

TestSuite(checkpoint_config, .init = make_base, .fini = remove_folder);

Test(checkpoint_config, describes_a_llama_to_hugging_face)
{
    checkpoint_write_initial(&small_plan, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    char   *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    cr_expect_str_eq(text,
                     "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\",\"model_type\":\"llama\","
                     "\"vocab_size\":10,\"hidden_size\":4,\"intermediate_size\":8,\"num_hidden_layers\":2,"
                     "\"num_attention_heads\":3,\"num_key_value_heads\":1,\"head_dim\":2,\"rms_norm_eps\":1e-5,"
                     "\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
                     "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                     "\"original_max_position_embeddings\":8192},\"max_position_embeddings\":65536,"
                     "\"attention_bias\":false,\"mlp_bias\":false,\"tie_word_embeddings\":true,"
                     "\"torch_dtype\":\"float32\"}",
                     "%s", text);
    free(text);
    json_decref(json);
}

// Exports the initial weights of a model, and expects these members in config.json.
static void expect_members(const struct plan *plan, const char *expected)
{
    const char *key;
    json_t     *member, *members = json_loads(expected, 0, NULL);
    cr_assert_not_null(members, "%s", expected);
    checkpoint_write_initial(plan, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    json_object_foreach(members, key, member)
    {
        char *found = json_dumps(json_object_get(json, key), JSON_ENCODE_ANY);
        cr_expect(json_equal(json_object_get(json, key), member), "%s is %s", key, found != NULL ? found : "missing");
        free(found);
    }
    json_decref(json);
    json_decref(members);
}

Test(checkpoint_config, describes_a_mixtral_to_hugging_face)
{
    struct plan mixtral = small_plan;
    strcpy(mixtral.model.family, "mixtral");
    mixtral.model.experts        = 4;
    mixtral.model.top_k          = 2;
    mixtral.model.auxiliary_loss = 0.02;
    expect_members(&mixtral, "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\","
                             " \"hidden_act\": \"silu\", \"num_local_experts\": 4, \"num_experts_per_tok\": 2,"
                             " \"router_aux_loss_coef\": 0.02}");
}

// norm_topk_prob: the gates are shares of the chosen experts.
Test(checkpoint_config, describes_a_qwen3_with_experts_to_hugging_face)
{
    struct plan qwen3 = small_plan;
    strcpy(qwen3.model.family, "qwen3_moe");
    qwen3.model.qk_norm    = 1;
    qwen3.model.experts    = 4;
    qwen3.model.expert_ffn = 6;
    qwen3.model.top_k      = 2;
    expect_members(&qwen3, "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\","
                           " \"num_experts\": 4, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6,"
                           " \"intermediate_size\": 8, \"decoder_sparse_step\": 1, \"mlp_only_layers\": [],"
                           " \"norm_topk_prob\": true, \"use_sliding_window\": false}");
}

Test(checkpoint_config, describes_other_families_under_names_of_its_own)
{
    struct plan other = small_plan;
    strcpy(other.model.family, "gswbench");
    other.model.activation      = ACTIVATION_RELU2;
    other.model.norm            = NORM_LAYER_1P;
    other.model.rope_fraction   = 0.5;
    other.model.experts         = 4;
    other.model.top_k           = 2;
    other.model.embedding_scale = 78.5;
    other.model.logit_scale     = 0.25;
    expect_members(&other, "{\"architectures\": [\"GswbenchForCausalLM\"], \"activation\": \"relu2\","
                           " \"norm\": \"layernorm1p\", \"rope_fraction\": 0.5, \"embedding_multiplier\": 78.5,"
                           " \"logit_scale\": 0.25, \"num_experts_per_tok\": 2}");
}
