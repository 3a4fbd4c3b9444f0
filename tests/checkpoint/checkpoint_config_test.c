// SPDX-License-Identifier: MIT
// config.json of a Hugging Face folder, which other programs need to read the weights.
#include "gswbench/checkpoint.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "small_checkpoint.h"

TestSuite(checkpoint_config, .init = make_base, .fini = remove_base);

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

Test(checkpoint_config, describes_a_mixtral_to_hugging_face)
{
    struct plan mixtral = small_plan;
    strcpy(mixtral.model.family, "mixtral");
    mixtral.model.experts        = 4;
    mixtral.model.top_k          = 2;
    mixtral.model.auxiliary_loss = 0.02;

    checkpoint_write_initial(&mixtral, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(json, "architectures"), 0)),
                     "MixtralForCausalLM");
    cr_expect_str_eq(json_string_value(json_object_get(json, "model_type")), "mixtral");
    cr_expect_str_eq(json_string_value(json_object_get(json, "hidden_act")), "silu");
    cr_expect_eq(json_integer_value(json_object_get(json, "num_local_experts")), 4);
    cr_expect_eq(json_integer_value(json_object_get(json, "num_experts_per_tok")), 2);
    cr_expect_eq(json_real_value(json_object_get(json, "router_aux_loss_coef")), 0.02);
    json_decref(json);
}

Test(checkpoint_config, describes_a_qwen3_with_experts_to_hugging_face)
{
    struct plan qwen3 = small_plan;
    strcpy(qwen3.model.family, "qwen3_moe");
    qwen3.model.qk_norm    = 1;
    qwen3.model.experts    = 4;
    qwen3.model.expert_ffn = 6;
    qwen3.model.top_k      = 2;

    checkpoint_write_initial(&qwen3, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(json, "architectures"), 0)),
                     "Qwen3MoeForCausalLM");
    cr_expect_str_eq(json_string_value(json_object_get(json, "model_type")), "qwen3_moe");
    cr_expect_eq(json_integer_value(json_object_get(json, "num_experts")), 4);
    cr_expect_eq(json_integer_value(json_object_get(json, "num_experts_per_tok")), 2);
    cr_expect_eq(json_integer_value(json_object_get(json, "moe_intermediate_size")), 6);
    cr_expect_eq(json_integer_value(json_object_get(json, "intermediate_size")), 8);
    cr_expect_eq(json_integer_value(json_object_get(json, "decoder_sparse_step")), 1);
    cr_expect_eq(json_array_size(json_object_get(json, "mlp_only_layers")), 0);
    cr_expect(json_is_true(json_object_get(json, "norm_topk_prob")), "its gates are shares of the chosen experts");
    cr_expect(json_is_false(json_object_get(json, "use_sliding_window")));
    json_decref(json);
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

    checkpoint_write_initial(&other, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(json, "architectures"), 0)),
                     "GswbenchForCausalLM");
    cr_expect_str_eq(json_string_value(json_object_get(json, "activation")), "relu2");
    cr_expect_str_eq(json_string_value(json_object_get(json, "norm")), "layernorm1p");
    cr_expect_eq(json_real_value(json_object_get(json, "rope_fraction")), 0.5);
    cr_expect_eq(json_real_value(json_object_get(json, "embedding_multiplier")), 78.5);
    cr_expect_eq(json_real_value(json_object_get(json, "logit_scale")), 0.25);
    cr_expect_eq(json_integer_value(json_object_get(json, "num_experts_per_tok")), 2);
    json_decref(json);
}
