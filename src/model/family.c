// SPDX-License-Identifier: MIT
// Model families with published tensor names, one row each.
#include <stddef.h>
#include <string.h>

#include "gswbench/model.h"

const struct model_family model_families[] = {
    {.name = "llama", .architecture = "LlamaForCausalLM"},
    {.name = "mixtral", .architecture = "MixtralForCausalLM", .has_experts = true},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .has_qk_norm = true},
    {.name = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM", .has_experts = true, .has_qk_norm = true},
    {.name = "deepseek_v3", .architecture = "DeepseekV3ForCausalLM", .has_experts = true, .has_latent_attention = true},
    {.name = NULL},
};

const struct model_family *model_family_of(const struct model_config *model)
{
    for (const struct model_family *family = model_families; family->name != NULL; family++) {
        if (strcmp(model->family, family->name) == 0) {
            return family;
        }
    }
    return NULL;
}
