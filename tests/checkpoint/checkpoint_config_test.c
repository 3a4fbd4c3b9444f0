// SPDX-License-Identifier: MIT
// config.json of a Hugging Face folder, which other programs need to read the weights.
#include "gswbench/checkpoint.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/internal.h"
#include "layouts.h"
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

// norm_topk_prob of Qwen3: the gates are shares of the chosen experts. Families that Hugging Face does not have are
// described under names of gswbench's own.
Test(checkpoint_config, describes_models_with_experts_and_other_families)
{
    static const struct {
        const char *model, *members;
    } cases[] = {
        {"family mixtral; experts 4; top_k 2; auxiliary_loss 0.02",
         "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", \"hidden_act\": \"silu\","
         " \"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"router_aux_loss_coef\": 0.02}"},
        {"family qwen3_moe; ffn 8; qk_norm yes; experts 4; expert_ffn 6; top_k 2",
         "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\", \"num_experts\": 4,"
         " \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6, \"intermediate_size\": 8,"
         " \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"norm_topk_prob\": true,"
         " \"use_sliding_window\": false}"},
        {"family gswbench; activation relu2; norm layernorm1p; rope_fraction 0.5; experts 4; top_k 2;"
         " embedding_scale 78.5; logit_scale 0.25",
         "{\"architectures\": [\"GswbenchForCausalLM\"], \"activation\": \"relu2\", \"norm\": \"layernorm1p\","
         " \"rope_fraction\": 0.5, \"embedding_multiplier\": 78.5, \"logit_scale\": 0.25, \"num_experts_per_tok\": 2}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tiny tiny = tiny_of(cases[i].model);
        const char *key;
        json_t     *member, *members = json_loads(cases[i].members, 0, NULL);
        json_t     *json = describe_model(&tiny.model, 16, FORMAT_F32);
        cr_assert_not_null(members, "%s", cases[i].members);
        json_object_foreach(members, key, member)
        {
            char *found = json_dumps(json_object_get(json, key), JSON_ENCODE_ANY);
            cr_expect(json_equal(json_object_get(json, key), member), "%s is %s", key,
                      found != NULL ? found : "missing");
            free(found);
        }
        json_decref(json);
        json_decref(members);
    }
}
