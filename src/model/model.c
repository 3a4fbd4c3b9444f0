// SPDX-License-Identifier: MIT
// Declares the options of [model], [adapters] and [published], and derives sizes from them.
#include "gswbench/model.h"

#include <stddef.h>
#include <string.h>

#include "gswbench/json.h"
#include "gswbench/number.h"

// clang-format off
const char *const model_activation_names[] = {
    [ACTIVATION_SWIGLU] = "swiglu", [ACTIVATION_GEGLU] = "geglu", [ACTIVATION_GELU] = "gelu",
    [ACTIVATION_RELU2]  = "relu2",  [ACTIVATION_COUNT] = NULL,
};
const char *const model_norm_names[] = {
    [NORM_RMS] = "rmsnorm", [NORM_LAYER] = "layernorm", [NORM_LAYER_1P] = "layernorm1p", [NORM_COUNT] = NULL,
};
const char *const model_position_names[] = {
    [POSITIONS_ROTARY] = "rotary", [POSITIONS_LEARNED] = "learned", [POSITIONS_ALIBI] = "alibi",
    [POSITIONS_NONE]   = "none",   [POSITIONS_COUNT]   = NULL,
};

const char *const model_router_score_names[] = {
    [ROUTER_SOFTMAX] = "softmax", [ROUTER_SIGMOID] = "sigmoid", NULL,
};

const char *const model_router_gates_names[] = {
    [GATES_OUTPUT] = "output", [GATES_INPUT] = "input", NULL,
};

// The upper limits of the options ensure that every parameter count fits in 64 bits.
const struct option model_options[] = {
    TEXT_OPTION   (model_config, preset, "", "model to read first: configs/models/NAME.ini"),
    TEXT_OPTION   (model_config, family, "gswbench", "names of exported tensors: llama, mixtral, qwen3, qwen3_moe, deepseek_v3 (also Kimi K2 and Moonlight) or gswbench (no other program reads it)"),
    INTEGER_OPTION(model_config, layers, "0", 0, 4096, "transformer blocks"),
    TEXT_OPTION   (model_config, pattern, "", "layers in order, e.g. 3 x dense, 58 x experts, or kinds joined by +, e.g. 2 x attention + mlp; or one letter per layer as Megatron writes hybrid models, e.g. MEMEM*EM-, with M mamba, * attention, - mlp, E experts, and / before the layers of each MTP module; brackets repeat a group, e.g. 2 x (window_attention + mlp, dense), dense; the last count may be omitted and then covers the remaining layers; empty: all dense, or all experts if experts > 0"),
    INTEGER_OPTION(model_config, hidden, "0", 0, 131072, "width of the residual stream"),
    INTEGER_OPTION(model_config, heads, "0", 0, 4096, "query heads"),
    INTEGER_OPTION(model_config, kv_heads, "0", 0, 4096, "key and value heads; fewer than heads: grouped-query attention (GQA)"),
    INTEGER_OPTION(model_config, head_dim, "0", 0, 1024, "elements per head"),
    INTEGER_OPTION(model_config, kv_rank, "0", 0, 131072, "latent attention (MLA): rank of compressed keys and values; head_dim is then the non-rotary part of a query or key head, and dense and experts in pattern use MLA; 0: no MLA"),
    INTEGER_OPTION(model_config, q_rank, "0", 0, 131072, "MLA: rank of compressed queries; 0: queries are not compressed"),
    INTEGER_OPTION(model_config, rope_dim, "0", 0, 1024, "MLA: rotary elements per query or key head; all heads share those of the key"),
    INTEGER_OPTION(model_config, value_dim, "0", 0, 1024, "MLA: elements per value head; 0: head_dim"),
    REAL_OPTION   (model_config, latent_norm_epsilon, "1e-6", 1e-12, 1e-1, "MLA: epsilon of the norms of compressed queries, keys and values; DeepSeek's code and transformers (modeling_deepseek_v3.py) use 1e-6 whatever norm_epsilon is"),
    INTEGER_OPTION(model_config, ffn, "0", 0, 1048576, "MLP width; also the width of an expert if expert_ffn = 0"),
    INTEGER_OPTION(model_config, vocab, "0", 0, 16777216, "vocabulary size, without padding"),
    INTEGER_OPTION(model_config, vocab_multiple, "1", 1, 65536, "the vocabulary is padded to a multiple of vocab_multiple x tp"),
    CHOICE_OPTION (model_config, activation, "swiglu", model_activation_names, "MLP activation; swiglu and geglu are gated: two input projections"),
    CHOICE_OPTION (model_config, norm, "rmsnorm", model_norm_names, "normalisation; layernorm1p stores its scale centered at zero"),
    REAL_OPTION   (model_config, norm_epsilon, "1e-5", 1e-12, 1e-1, "epsilon added to the variance before the square root"),
    CHOICE_OPTION (model_config, positions, "rotary", model_position_names, "position encoding: rotary (RoPE), learned (a trained table is added to the embedding), alibi (scores fall linearly with distance, with one slope per head) or none"),
    INTEGER_OPTION(model_config, max_positions, "0", 0, 16777216, "positions = learned: rows of the table, at least train.sequence"),
    REAL_OPTION   (model_config, rope_theta, "10000", 1, 1e12, "RoPE base"),
    REAL_OPTION   (model_config, rope_fraction, "1", 0, 1, "share of each head that RoPE rotates"),
    REAL_OPTION   (model_config, rope_scaling, "1", 1, 1024, "Llama 3.1 scaling factor of low RoPE frequencies; 1: none"),
    BOOLEAN_OPTION(model_config, qk_norm, "no", "RMS norm of each query and key head before RoPE"),
    INTEGER_OPTION(model_config, window, "0", 0, 16777216, "window_attention in pattern: window in positions, including the query's; 0: no such layers"),
    BOOLEAN_OPTION(model_config, attention_sinks, "no", "each head has a trained sink logit, which adds to the softmax denominator only"),
    BOOLEAN_OPTION(model_config, attention_bias, "no", "biases in the qkv and output projections of attention"),
    BOOLEAN_OPTION(model_config, mlp_bias, "no", "biases in fc1 and fc2, also in experts"),
    BOOLEAN_OPTION(model_config, router_offset, "no", "trained bias of the router's logits; it affects the gates"),
    BOOLEAN_OPTION(model_config, repeat_prediction, "no", "all MTP modules have the same weights, with a bias for load balancing of each"),
    BOOLEAN_OPTION(model_config, tied, "no", "the output layer shares the embedding table"),
    REAL_OPTION   (model_config, embedding_scale, "1", 1e-6, 1e6, "factor on the output of the embedding"),
    REAL_OPTION   (model_config, logit_scale, "1", 1e-6, 1e6, "factor on the logits before the loss"),
    INTEGER_OPTION(model_config, predicted_tokens, "0", 0, 8, "multi-token prediction (MTP): number of MTP modules, each predicting one token further ahead; a module is one more layer of the last kind, reads the output of the layer before it and the embedding of the next token, and shares embedding and output layer"),
    INTEGER_OPTION(model_config, experts, "0", 0, 1024, "experts per MoE layer; 0: none"),
    INTEGER_OPTION(model_config, expert_ffn, "0", 0, 1048576, "MLP width of one expert; 0: ffn"),
    INTEGER_OPTION(model_config, expert_hidden, "0", 0, 131072, "width of the inputs and outputs of experts (LatentMoE): a layer with experts projects tokens to it before dispatch, and projects the sum of their experts back; 0: hidden, without projections"),
    INTEGER_OPTION(model_config, shared_ffn, "0", 0, 1048576, "total MLP width of the shared experts in a MoE layer; 0: none"),
    INTEGER_OPTION(model_config, top_k, "0", 0, 1024, "experts per token"),
    CHOICE_OPTION (model_config, router_score, "softmax", model_router_score_names, "router score: softmax over all experts, or sigmoid of each logit"),
    CHOICE_OPTION (model_config, router_gates, "output", model_router_gates_names, "gates scale the output of an expert, or its input (Llama 4)"),
    BOOLEAN_OPTION(model_config, router_normalise, "yes", "yes: a token's gates are its top_k scores divided by their sum; no: the scores themselves"),
    REAL_OPTION   (model_config, router_scale, "1", 1e-6, 1e6, "factor on the gates"),
    INTEGER_OPTION(model_config, router_groups, "0", 0, 32, "group-limited routing: contiguous groups of experts, ranked by the sum of their two best scores; 0: none"),
    INTEGER_OPTION(model_config, router_top_groups, "0", 0, 32, "group-limited routing: groups per token"),
    REAL_OPTION   (model_config, router_bias_rate, "0", 0, 1, "expert bias for load balancing without a loss: change per step, against the load; the bias affects the selection, not the gates; 0: no bias"),
    REAL_OPTION   (model_config, capacity_factor, "0", 0, 1024, "expert capacity, as a multiple of the mean load: fewer tokens are padded, more are dropped; 0: dropless"),
    REAL_OPTION   (model_config, auxiliary_loss, "0", 0, 1, "coefficient of the router's load-balancing loss"),
    INTEGER_OPTION(model_config, mamba_heads, "0", 0, 4096, "mamba in pattern: heads of Mamba-2; 0: no such layers"),
    INTEGER_OPTION(model_config, mamba_head_dim, "64", 1, 1024, "mamba in pattern: elements per head of Mamba-2"),
    INTEGER_OPTION(model_config, mamba_state, "128", 1, 1024, "mamba in pattern: state elements per element of a head"),
    INTEGER_OPTION(model_config, mamba_groups, "0", 0, 1024, "mamba in pattern: groups of heads that share B and C; a multiple of tp"),
    INTEGER_OPTION(model_config, mamba_conv, "4", 1, 16, "mamba in pattern: width of the causal convolution"),
    INTEGER_OPTION(model_config, mamba_chunk, "128", 1, 4096, "mamba in pattern: positions per chunk of the scan"),
    REAL_OPTION   (model_config, init_deviation, "0.02", 0, 1, "standard deviation of the initial weights"),
    END_OPTIONS
};
// clang-format on

// clang-format off
const struct option adapters_options[] = {
    INTEGER_OPTION(adapters_config, rank, "0", 0, 65536, "rank of the adapters (LoRA): only they are trained, and all other weights are frozen; 0: no adapters"),
    REAL_OPTION   (adapters_config, alpha, "32", 1e-6, 1e6, "the output of an adapter is scaled by alpha / rank"),
    SET_OPTION    (adapters_config, targets, "qkv, projection, fc1, fc2", linear_kind_names, "matrices with adapters: qkv (linear_qkv; q_proj, k_proj and v_proj with one A), projection (linear_proj; o_proj), fc1 (linear_fc1; gate_proj and up_proj with one A), fc2 (linear_fc2; down_proj); fc1 and fc2 of dense MLPs and shared experts"),
    END_OPTIONS
};
// clang-format on

void model_set_defaults(struct model_config *model)
{
    option_set_defaults(model_options, model);
    option_set_defaults(adapters_options, &model->adapters);
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

int64_t model_key_dim(const struct model_config *model)
{
    return model->head_dim + (model->kv_rank > 0 ? model->rope_dim : 0);
}

int64_t model_value_dim(const struct model_config *model)
{
    return model->kv_rank > 0 && model->value_dim > 0 ? model->value_dim : model->head_dim;
}

int64_t model_rotary_width(const struct model_config *model)
{
    if (model->positions != POSITIONS_ROTARY) {
        return 0;
    }
    return model->kv_rank > 0 ? model->rope_dim : (int64_t)((double)model->head_dim * model->rope_fraction);
}

int64_t model_padded_vocab(const struct model_config *model, int64_t tp)
{
    return number_round_up(model->vocab, model->vocab_multiple * tp);
}

bool model_is_frozen(const struct model_config *model)
{
    return model->adapters.rank > 0;
}

bool model_adapts(const struct model_config *model, enum linear_kind kind)
{
    return model_is_frozen(model) && (model->adapters.targets >> kind & 1) != 0;
}

int64_t model_adapter(const struct model_config *model, enum linear_kind kind, int64_t in, int64_t out)
{
    return model_adapts(model, kind) ? model->adapters.rank * (in + out) : 0;
}

int64_t model_expert_hidden(const struct model_config *model)
{
    return model->expert_hidden > 0 ? model->expert_hidden : model->hidden;
}

int64_t model_expert_ffn(const struct model_config *model)
{
    return model->expert_ffn > 0 ? model->expert_ffn : model->ffn;
}

int64_t model_mamba_inner(const struct model_config *model)
{
    return model->mamba_heads * model->mamba_head_dim;
}

int64_t model_all_layers(const struct model_config *model)
{
    return model->layers + model->predicted_tokens;
}

// One row per model family with published tensor names.

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

// The following tables have the FLOP conventions and the options of [published].

// clang-format off
const char *const model_flop_names[] = {
    [FLOPS_PUBLISHED] = "published", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "six_n",
    [FLOPS_HARDWARE]  = "hardware",  [FLOPS_COUNT] = NULL,
};

#define CONVENTION(key, convention) JSON_PLACE(JSON_FIELD_REAL, key, convention, sizeof(double))
const struct json_field model_flop_fields[] = {
    CONVENTION("published", FLOPS_PUBLISHED),
    CONVENTION("full", FLOPS_FULL),
    CONVENTION("causal", FLOPS_CAUSAL),
    CONVENTION("six_n", FLOPS_6N),
    CONVENTION("hardware", FLOPS_HARDWARE),
    JSON_END
};

// Names of the conventions that a published table can use, in the order of enum flop_convention.
static const char *const convention_names[] = {
    [FLOPS_PUBLISHED] = "none", [FLOPS_FULL] = "full", [FLOPS_CAUSAL] = "causal", [FLOPS_6N] = "6n", NULL,
};

static const char *const memory_names[] = {[MEMORY_ALLOCATED] = "allocated", [MEMORY_RESERVED] = "reserved", NULL};

#define PEAK_OPTION(NAME, name) \
    {"peak_" #name, OPTION_REAL, OPTION_FIELD(published_config, peak[RATE_##NAME]), "0", 0, 1e18, NULL, \
     #NAME " peak per device in FLOP/s that the published MFU divides by; 0: none"},

const struct option published_options[] = {
    TEXT_OPTION   (published_config, source, "", "publication of the figures"),
    TEXT_OPTION   (published_config, device, "", "device of the figures, as its driver names it; empty: the device of this file's [hardware] profile"),
    TEXT_OPTION   (published_config, variant, "", "variant of a config, e.g. compiled; selects [when variant=NAME]"),
    CHOICE_OPTION (published_config, convention, "none", convention_names, "convention by which the publication counts model FLOPs"),
    INTEGER_OPTION(published_config, flop_kv_heads, "0", 0, 4096, "key and value heads in the published FLOP count; 0: as the model"),
    INTEGER_OPTION(published_config, flop_digits, "0", 0, 15, "significant digits of the published FLOPs per sequence; 0: exact"),
    BOOLEAN_OPTION(published_config, count_embedding, "yes", "6n: N includes the input embedding"),
    RATES(PEAK_OPTION)
    REAL_OPTION   (published_config, step_seconds, "0", 0, 1e9, "published step time in seconds for the ranks and precision of its [when ...] section; 0: not published"),
    REAL_OPTION   (published_config, mfu_percent, "0", 0, 100, "published MFU in percent for the ranks and precision of its [when ...] section; 0: not published"),
    REAL_OPTION   (published_config, memory_gib, "0", 0, 1e6, "published memory in GiB of the rank with the highest use, for the ranks and precision of its [when ...] section; 0: not published"),
    CHOICE_OPTION (published_config, memory, "allocated", memory_names, "meaning of memory_gib: peak memory that the allocator has given out (allocated), or has taken from the device (reserved)"),
    BOOLEAN_OPTION(published_config, fitted, "no", "parameters of the cost model were fitted to these step times"),
    END_OPTIONS
};
// clang-format on
