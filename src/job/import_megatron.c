// SPDX-License-Identifier: MIT
// Translates arguments of Megatron that depend on each other, or whose default differs from gswbench's.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

// Reads a list of moe_layer_freq, "[0,1]", as "dense, experts". Returns the list's end, or NULL if it is malformed.
static const char *read_kinds(struct arena *arena, const char *list, const char **kinds)
{
    const char *at = list;
    for (*kinds = ""; at == list ? *at == '[' : *at == ','; at += 2) {
        if (at[1] != '0' && at[1] != '1') {
            return NULL;
        }
        *kinds = arena_format(arena, "%s%s%s", *kinds, at > list ? ", " : "", at[1] == '1' ? "experts" : "dense");
    }
    return at > list && *at == ']' ? at + 1 : NULL;
}

// Sets the pattern of Megatron's moe_layer_freq: "[0]*3+[1]*58", or N for experts in layers 0, N, 2 N and so on.
static status derive_pattern(struct reader *reader, const char *frequency)
{
    int64_t     every   = 1;
    const char *pattern = "", *kinds;
    if (number_parse_integer(frequency, &every)) {
        if (every > 1) {
            reader_set(reader, "model.pattern",
                       arena_format(reader->values.arena, "(experts, %" PRId64 " x dense)", every - 1));
        }
        return OK;
    }
    for (const char *at = frequency; *at != '\0'; at += *at == '+') {
        int count = 1, length = 0;    // "[0]" is "[0]*1"
        at = read_kinds(reader->values.arena, at, &kinds);
        if (at == NULL || (*at == '*' && (sscanf(at, "*%9d%n", &count, &length) < 1 || count < 1)) ||
            strchr("+", at[length]) == NULL) {
            return fail("%s: moe_layer_freq = %s is not read; a number, [0]*3+[1]*58 and [0,1]*24 are",
                        reader->values.path, frequency);
        }
        at += length;
        bool is_group = strchr(kinds, ',') != NULL;
        pattern = arena_format(reader->values.arena, "%s%s%d x %s%s%s", pattern, *pattern != '\0' ? ", " : "", count,
                               is_group ? "(" : "", kinds, is_group ? ")" : "");
    }
    reader_set(reader, "model.pattern", pattern);
    return OK;
}

// Sets the modules that Megatron's selective recompute lists, and the limits of full recompute.
static void derive_recompute(struct reader *reader)
{
    bool is_flag = reader_value(reader, "recompute_activations") != NULL;
    bool is_some = reader_has(reader, "recompute_granularity", "selective") || is_flag;
    if (is_some && reader_find(reader, "recompute_modules") != NULL) {
        reader_set(reader, "train.recompute", "modules");
        reader_set(reader, "train.recompute_modules", reader_value(reader, "recompute_modules"));
    } else if (reader_value(reader, "moe_layer_recompute") != NULL) {    // an argument until May 2025
        reader_set(reader, "train.recompute", "modules");
        reader_set(reader, "train.recompute_modules", is_some ? "core_attn, moe" : "moe");
    }
    if (reader_has(reader, "recompute_method", "block")) {
        reader_set_number(reader, "train.recompute_layers", reader_number(reader, "recompute_num_layers", 0));
    } else if (reader_has(reader, "recompute_num_layers", "1")) {
        reader_has(reader, "recompute_method", "uniform");    // marks it as used: each layer by itself, as in gswbench
    }
}

// Sets the precision. Runs after the names are translated: FP8 jobs also have --bf16, which the names map to BF16.
status import_derive_precision(struct reader *reader)
{
    bool has_fp8 = reader_value(reader, "fp8_format") != NULL, has_fp4 = reader_value(reader, "fp4_format") != NULL;
    const char *recipe = reader_setting(reader, "precision.recipe");
    if (has_fp8 || has_fp4) {
        reader_set(reader, "precision.compute", has_fp8 ? "fp8" : "fp4");
    }
    if (reader_value(reader, "first_last_layers_bf16") != NULL) {
        if (reader_number(reader, "num_layers_at_start_in_bf16", 1) > 0) {
            return fail("%s: first_last_layers_bf16 is not supported unless num_layers_at_start_in_bf16 = 0: only "
                        "layers at the end of the model may stay in BF16",
                        reader->values.path);
        }
        reader_set_number(reader, "precision.bf16_last_layers", reader_number(reader, "num_layers_at_end_in_bf16", 1));
    }
    // gswbench can store and gather weights in FP8 only if they have one scale per tensor.
    bool has_scale = recipe != NULL && (strcmp(recipe, "delayed") == 0 || strcmp(recipe, "current") == 0);
    if (has_fp8 && has_scale && reader_value(reader, "fp8_param_gather") != NULL) {
        reader_set(reader, "precision.fp8_weights", "yes");
    }
    if (reader_has(reader, "exp_avg_sq_dtype", "bf16") && reader_has(reader, "exp_avg_dtype", "bf16")) {
        reader_set(reader, "precision.moments", "bf16");
    }
    return OK;
}

// Sets window attention in Megatron. Every Nth layer attends to all positions (window_attn_skip_freq).
static status derive_windows(struct reader *reader)
{
    const char *window    = reader_value(reader, "window_size"),
               *frequency = reader_value(reader, "window_attn_skip_freq");
    const char *kind      = reader_find(reader, "num_experts") != NULL ? "experts" : "mlp";
    int64_t     every     = 0;
    int         before;
    if (window == NULL) {
        return OK;
    }
    if (sscanf(window, "%9d", &before) != 1 || before < 0 || reader_find(reader, "moe_layer_freq") != NULL ||
        (frequency != NULL && (!number_parse_integer(frequency, &every) || every < 2))) {
        return fail(
            "%s: window_size = %s with window_attn_skip_freq = %s and moe_layer_freq = %s is not read; set [model] "
            "window and pattern afterwards",
            reader->values.path, window, frequency != NULL ? frequency : "(missing)",
            reader_find(reader, "moe_layer_freq") != NULL ? reader_value(reader, "moe_layer_freq") : "(missing)");
    }
    reader_set_number(reader, "model.window", before + 1);    // ours includes the query's position
    reader_set_windows(reader, every > 0 ? every - 1 : 0, kind);
    return OK;
}

// Sets FSDP: Megatron's own, or PyTorch's (use_torch_fsdp2). Both shard over the ranks of context parallelism, too.
static void derive_sharding(struct reader *reader)
{
    bool        is_torch = reader_value(reader, "use_torch_fsdp2") != NULL;
    const char *strategy = is_torch ? "optim_grads_params" : "no_shard";
    bool        is_fsdp  = reader_value(reader, "use_megatron_fsdp") != NULL;
    is_fsdp              = reader_value(reader, "use_custom_fsdp") != NULL || is_fsdp;    // its name until May 2025
    if (is_fsdp && reader_value(reader, "data_parallel_sharding_strategy") != NULL) {
        strategy = reader_value(reader, "data_parallel_sharding_strategy");
    }
    if (strcmp(strategy, "optim_grads_params") == 0) {
        reader_set_all(reader, "parallel.dp=1 parallel.fsdp=auto parallel.zero=0");
        reader_set(reader, "parallel.shard_over_cp",
                   reader_number(reader, "context_parallel_size", 1) > 1 ? "yes" : "no");
    } else if (is_fsdp) {
        reader_set(reader, "parallel.zero", strcmp(strategy, "no_shard") == 0 ? "0" : "1");
        reader_set(reader, "parallel.gradient_reduce", strcmp(strategy, "optim_grads") == 0 ? "microbatch" : "step");
    }
}

// Sets how layers are assigned to pipeline chunks: vp, and whether embedding and loss count as layers.
static status derive_stages(struct reader *reader)
{
    int64_t per_chunk    = reader_number(reader, "num_layers_per_virtual_pipeline_stage", 0);
    int64_t stages       = reader_number(reader, "pipeline_model_parallel_size", 1);
    bool    is_embedding = reader_value(reader, "account_for_embedding_in_pipeline_split") != NULL;
    bool    is_loss      = reader_value(reader, "account_for_loss_in_pipeline_split") != NULL;
    if (is_embedding != is_loss) {
        return fail("%s: account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split are read only "
                    "together",
                    reader->values.path);
    }
    if (is_loss) {
        reader_set(reader, "parallel.layers_per_chunk_embedding", "yes");
    }
    if (per_chunk > 0 && stages > 0) {
        int64_t layers = reader_number(reader, "num_layers", 0) + (is_loss ? 2 : 0);
        reader_set_number(reader, "parallel.vp", layers / stages / per_chunk);
    }
    return OK;
}

// Sets the router of Megatron. Without pre_softmax, the softmax is over the chosen experts, which then need no
// normalisation.
static void derive_router(struct reader *reader)
{
    if (reader_value(reader, "moe_router_pre_softmax") != NULL) {
        bool is_sigmoid = reader_has(reader, "moe_router_score_function", "sigmoid");
        reader_set(reader, "model.router_normalise", is_sigmoid ? "yes" : "no");
    }
    if (reader_value(reader, "num_experts") != NULL) {
        reader_set(reader, "model.router_offset", reader_value(reader, "disable_bias_linear") != NULL ? "no" : "yes");
    }
}

// Adds Megatron's settings that depend on several arguments.
status import_derive_megatron(struct reader *reader)
{
    const char *frequency = reader_value(reader, "moe_layer_freq"), *vocab = reader_value(reader, "padded_vocab_size");
    vocab = vocab != NULL ? vocab : reader_value(reader, "pad_vocab_size_to");    // Megatron-DeepSpeed's
    if (vocab != NULL) {
        reader_set(reader, "model.vocab", vocab);
        reader_set(reader, "model.vocab_multiple", "1");
    }
    TRY(frequency != NULL ? derive_pattern(reader, frequency) : OK);
    TRY(derive_windows(reader));
    TRY(derive_stages(reader));
    derive_router(reader);
    derive_sharding(reader);
    derive_recompute(reader);
    if (reader_value(reader, "apply_layernorm_1p") != NULL) {    // an RMS norm costs the same with it
        reader_set(reader, "model.norm", reader_has(reader, "normalization", "RMSNorm") ? "rmsnorm" : "layernorm1p");
    }
    // In newer Megatron, the expert-parallel groups include the ranks of cp.
    if (reader_number(reader, "context_parallel_size", 1) > 1 &&
        reader_number(reader, "expert_model_parallel_size", 1) > 1) {
        reader_set(reader, "parallel.ep_over_cp", "yes");
    }
    const char *factor = reader_value(reader, "rope_scaling_factor");
    if (reader_value(reader, "use_rope_scaling") != NULL) {
        reader_set(reader, "model.rope_scaling", factor != NULL ? factor : "8");
    }
    return OK;
}

// Settings that Megatron makes, and values that it ignores, if an argument is given (is_given) or missing.
static const struct {
    const char *argument;
    bool        is_given;
    const char *settings, *dropped;
} parts[] = {
    {"num_experts", true, "model.top_k=2", ""},
    {"fp8_format", true, "precision.recipe=delayed precision.fp8_history=1", ""},
    {"disable_bias_linear", false, "model.attention_bias=yes model.mlp_bias=yes", ""},
    {"group_query_attention", true, "model.kv_heads=1", ""},
    {"group_query_attention", false, "", "num_query_groups"},    // each query head has its own key and value head
    // Latent attention always has norms.
    {"multi_latent_attention", true, "model.kv_rank=32 model.head_dim=128 model.rope_dim=64 model.value_dim=128",
     "kv_channels qk_layernorm"},
    {"multi_latent_attention", false, "", "q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim"},
    {"moe_router_enable_expert_bias", true, "model.router_bias_rate=0.001", ""},
    {"moe_router_enable_expert_bias", false, "", "moe_router_bias_update_rate"},
};

// Sets options whose default in Megatron differs from gswbench's default.
void import_set_megatron_defaults(struct reader *reader)
{
    double hidden = (double)reader_number(reader, "hidden_size", 0);
    reader_set_all(reader, "model.activation=gelu model.norm=layernorm model.positions=learned model.tied=yes "
                           "model.vocab_multiple=128 parallel.context=ring parallel.sequence_parallel=no "
                           "parallel.dp=auto precision.compute=fp32");
    if (reader_value(reader, "hybrid_layer_pattern") != NULL ||
        reader_value(reader, "hybrid_override_pattern") != NULL) {
        double width = (double)reader_number(reader, "mamba_head_dim", 64);
        reader_set(reader, "model.mamba_heads",
                   arena_format(reader->values.arena, "%.0f", width > 0 ? floor(2 * hidden / width) : 0.0));
        reader_set(reader, "model.mamba_groups", "8");
    }
    const char *positions = reader_value(reader, "position_embedding_type");
    bool        is_rotary = reader_value(reader, "use_rotary_position_embeddings") != NULL ||
                     reader_value(reader, "enable_gpt_oss") != NULL;
    if (!is_rotary && (positions == NULL || strcmp(positions, "learned_absolute") == 0)) {
        reader_set_number(reader, "model.max_positions", reader_number(reader, "max_position_embeddings", 0));
    }
    double ffn = reader_value(reader, "swiglu") != NULL ? 64 * floor(8 * hidden / 3 / 64) : 4 * hidden;
    reader_set(reader, "model.ffn", arena_format(reader->values.arena, "%.0f", ffn));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if ((reader_value(reader, parts[i].argument) != NULL) == parts[i].is_given) {
            reader_set_all(reader, parts[i].settings);
            reader_drop(reader, parts[i].dropped);
        }
    }
}
