// SPDX-License-Identifier: MIT
// The [model] options, and sizes derived from them.
#include "gswbench/model.h"

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

// With these upper limits every parameter count fits in 64 bits.
const struct option model_options[] = {
    TEXT_OPTION   (model_config, preset, "", "shape read first, from configs/models/NAME.ini"),
    TEXT_OPTION   (model_config, family, "gswbench", "names of exported tensors: llama, mixtral, qwen3, qwen3_moe, deepseek_v3 (Kimi K2 and Moonlight, too) or gswbench, which no public program reads"),
    INTEGER_OPTION(model_config, layers, "0", 0, 4096, "transformer blocks"),
    TEXT_OPTION   (model_config, pattern, "", "layers in order, as in 3 x dense, 58 x experts, or kinds joined by +, as in 2 x attention + mlp; groups in brackets repeat, as in 2 x (window_attention + mlp, dense), dense; the last number may be left out: what remains; empty: all dense, or all with experts"),
    INTEGER_OPTION(model_config, hidden, "0", 0, 131072, "width of the residual stream"),
    INTEGER_OPTION(model_config, heads, "0", 0, 4096, "query heads"),
    INTEGER_OPTION(model_config, kv_heads, "0", 0, 4096, "key and value heads; fewer than heads is grouped-query attention"),
    INTEGER_OPTION(model_config, head_dim, "0", 0, 1024, "elements of a head"),
    INTEGER_OPTION(model_config, kv_rank, "0", 0, 131072, "latent attention: width that keys and values are compressed to; then head_dim is what does not rotate of a head of queries and keys, and dense and experts in a pattern are layers with latent attention; 0: attention is plain"),
    INTEGER_OPTION(model_config, q_rank, "0", 0, 131072, "latent attention: width that queries are compressed to; 0: they are not"),
    INTEGER_OPTION(model_config, rope_dim, "0", 0, 1024, "latent attention: elements of a head of queries and keys that rotate, of keys the same in all heads"),
    INTEGER_OPTION(model_config, value_dim, "0", 0, 1024, "latent attention: elements of a head of values; 0: head_dim"),
    REAL_OPTION   (model_config, latent_norm_epsilon, "1e-6", 1e-12, 1e-1, "latent attention: norm_epsilon of the norms of compressed queries, keys and values; 1e-6 whatever norm_epsilon is in DeepSeek's code and transformers' (modeling_deepseek_v3.py)"),
    INTEGER_OPTION(model_config, ffn, "0", 0, 1048576, "width of the MLP, and of an expert where expert_ffn is 0"),
    INTEGER_OPTION(model_config, vocab, "0", 0, 16777216, "tokens of the vocabulary, without padding"),
    INTEGER_OPTION(model_config, vocab_multiple, "1", 1, 65536, "the vocabulary is padded to a multiple of this times tp"),
    CHOICE_OPTION (model_config, activation, "swiglu", model_activation_names, "MLP activation; the gated ones have two input projections"),
    CHOICE_OPTION (model_config, norm, "rmsnorm", model_norm_names, "normalisation; layernorm1p stores its scale around zero"),
    REAL_OPTION   (model_config, norm_epsilon, "1e-5", 1e-12, 1e-1, "added to the variance before its root"),
    CHOICE_OPTION (model_config, positions, "rotary", model_position_names, "how a token's position is known: heads of queries and keys rotate; a row of a trained table is added to the embedding; scores of attention fall with the distance of the key, in each head by its own slope (ALiBi); or not at all"),
    INTEGER_OPTION(model_config, max_positions, "0", 0, 16777216, "positions = learned: rows of the table, as many as a sequence has tokens or more"),
    REAL_OPTION   (model_config, rope_theta, "10000", 1, 1e12, "base of the rotary position frequencies"),
    REAL_OPTION   (model_config, rope_fraction, "1", 0, 1, "share of each head that rotates"),
    REAL_OPTION   (model_config, rope_scaling, "1", 1, 1024, "Llama 3.1 factor by which low rotary frequencies are slowed; 1: none"),
    BOOLEAN_OPTION(model_config, qk_norm, "no", "an RMS norm of each head of queries and keys, before positions rotate them"),
    INTEGER_OPTION(model_config, window, "0", 0, 16777216, "positions that a query of window_attention in the pattern sees, with its own; 0: there are no such layers"),
    BOOLEAN_OPTION(model_config, attention_sinks, "no", "each head has a trained score that joins the sum of a query's exponentials and has no value"),
    BOOLEAN_OPTION(model_config, attention_bias, "no", "the qkv and output projections of attention have biases"),
    BOOLEAN_OPTION(model_config, mlp_bias, "no", "fc1 and fc2 have biases, of experts, too"),
    BOOLEAN_OPTION(model_config, router_offset, "no", "the router's logits have a trained bias, which is part of gates"),
    BOOLEAN_OPTION(model_config, tied, "no", "the output projection shares the embedding table"),
    REAL_OPTION   (model_config, embedding_scale, "1", 1e-6, 1e6, "what rows of the embedding table are multiplied by"),
    REAL_OPTION   (model_config, logit_scale, "1", 1e-6, 1e6, "what logits are multiplied by before the loss"),
    INTEGER_OPTION(model_config, predicted_tokens, "0", 0, 8, "tokens behind the next one that the model learns to predict, too: each by a layer more, as the last one, that reads the outputs of the layer before it and the embedding of a token further on, and shares embedding and head"),
    INTEGER_OPTION(model_config, experts, "0", 0, 1024, "experts of a layer that has them; 0: none"),
    INTEGER_OPTION(model_config, expert_ffn, "0", 0, 1048576, "width of one expert; 0: ffn"),
    INTEGER_OPTION(model_config, shared_ffn, "0", 0, 1048576, "width of the MLP that all tokens share in layers with experts, of all shared experts together; 0: none"),
    INTEGER_OPTION(model_config, top_k, "0", 0, 1024, "experts that a token uses"),
    CHOICE_OPTION (model_config, router_score, "softmax", model_router_score_names, "score of an expert: a softmax of the router's logits of all experts, or the sigmoid of its own"),
    CHOICE_OPTION (model_config, router_gates, "output", model_router_gates_names, "what gates multiply: the output of an expert, or its input, as in Llama 4"),
    BOOLEAN_OPTION(model_config, router_normalise, "yes", "gates of a token are the shares that the experts which it uses have of their scores, else the scores themselves"),
    REAL_OPTION   (model_config, router_scale, "1", 1e-6, 1e6, "what gates are multiplied by"),
    INTEGER_OPTION(model_config, router_groups, "0", 0, 32, "groups of experts, one after another, of which a token uses the router_top_groups best, by the sum of their two best scores; 0: none"),
    INTEGER_OPTION(model_config, router_top_groups, "0", 0, 32, "groups whose experts a token may use"),
    REAL_OPTION   (model_config, router_bias_rate, "0", 0, 1, "a bias is added to scores for the choice, not for gates, and each step moves it by this much against the expert's load; 0: no bias"),
    REAL_OPTION   (model_config, capacity_factor, "0", 0, 1024, "tokens that an expert takes, as a multiple of its fair share: fewer are padded, more are dropped; 0: all that choose it"),
    REAL_OPTION   (model_config, auxiliary_loss, "0", 0, 1, "weight of the load-balancing loss of the router"),
    REAL_OPTION   (model_config, init_deviation, "0.02", 0, 1, "standard deviation of the initial weights"),
    END_OPTIONS
};
// clang-format on

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
    int64_t multiple = model->vocab_multiple * tp;
    return (model->vocab + multiple - 1) / multiple * multiple;
}

int64_t model_expert_ffn(const struct model_config *model)
{
    return model->expert_ffn > 0 ? model->expert_ffn : model->ffn;
}

int64_t model_all_layers(const struct model_config *model)
{
    return model->layers + model->predicted_tokens;
}
