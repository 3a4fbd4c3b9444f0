// SPDX-License-Identifier: MIT
// The model configuration: sizes, block composition, and conventions of published FLOPs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/json.h"
#include "gswbench/op_shape.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

// Positional encoding: rotary embedding (RoPE), a trained table that is added to the embedding, ALiBi, or none.
enum positions { POSITIONS_ROTARY, POSITIONS_LEARNED, POSITIONS_ALIBI, POSITIONS_NONE, POSITIONS_COUNT };

// Whether gates scale the outputs or the inputs of a token's experts.
enum router_gates { GATES_OUTPUT, GATES_INPUT };

// [model]
struct model_config {
    char    preset[112];     // configs/models/NAME.ini, read before this section
    char    family[32];      // naming of exported tensors: one of model_families, or gswbench
    char    pattern[128];    // kinds of the layers; empty: all layers are the same
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t q_rank, kv_rank, rope_dim, value_dim;    // of latent attention (MLA); kv_rank 0: plain attention
    int64_t vocab_multiple;                          // the vocabulary is padded to a multiple of this times tp
    int64_t activation, norm;                        // enum activation, enum norm
    double  norm_epsilon, latent_norm_epsilon;       // the second is for compressed queries, keys and values
    int64_t positions;                               // enum positions
    int64_t max_positions;                           // rows of the trained table
    double  rope_theta, rope_fraction;
    double  rope_scaling;                        // Llama 3.1 frequency scaling; 1: none
    int64_t qk_norm;                             // RMS norm of each head of queries and keys
    int64_t window;                              // sliding window, in positions; 0: no layers with one
    int64_t attention_sinks;                     // a trained score of each head joins the softmax and has no value
    int64_t attention_bias, mlp_bias;            // of linears, also in experts
    int64_t router_offset;                       // the router's logits have a trained bias
    int64_t tied;                                // the head shares the embedding table
    double  embedding_scale, logit_scale;        // factors for rows of the embedding table and for logits
    int64_t predicted_tokens;                    // MTP depth: modules that each predict one more token
    int64_t experts, expert_ffn, top_k;          // of layers with experts
    int64_t shared_ffn;                          // width of the shared experts together; 0: none
    int64_t router_score;                        // enum router_score
    int64_t router_gates;                        // enum router_gates
    int64_t router_normalise;                    // the gates of a token sum to router_scale
    int64_t router_groups, router_top_groups;    // experts are chosen from the best groups; 0: no groups
    double  router_scale, router_bias_rate;      // router_bias_rate 0: no bias for load balancing
    double  capacity_factor, auxiliary_loss;
    double  init_deviation;
};
extern const struct option model_options[];
extern const char *const   model_activation_names[];
extern const char *const   model_norm_names[];
extern const char *const   model_position_names[];
extern const char *const   model_router_score_names[];
extern const char *const   model_router_gates_names[];

bool    model_is_gated(const struct model_config *model);
bool    model_norm_has_bias(const struct model_config *model);
int64_t model_query_width(const struct model_config *model);     // heads * head_dim
int64_t model_kv_width(const struct model_config *model);        // kv_heads * head_dim, for keys only
int64_t model_key_dim(const struct model_config *model);         // of a head of queries and keys in attention
int64_t model_value_dim(const struct model_config *model);       // of a head of values
int64_t model_rotary_width(const struct model_config *model);    // rotated elements of a head: even, or 0
int64_t model_expert_ffn(const struct model_config *model);
int64_t model_all_layers(const struct model_config *model);    // with MTP modules
int64_t model_padded_vocab(const struct model_config *model, int64_t tp);

// A model family whose tensors and config.json follow a Hugging Face class. All its layers are the same, except with
// latent attention: then the first ones are dense and the others have experts, as in DeepSeek-V3.
struct model_family {
    const char *name;            // as in [model] family and model_type; NULL ends the list
    const char *architecture;    // the class name
    bool        has_experts, has_qk_norm, has_latent_attention;
};
extern const struct model_family model_families[];
const struct model_family       *model_family_of(const struct model_config *model);    // NULL: gswbench's own names

// FLOP conventions; docs/method.md has the formulas.
enum flop_convention {
    FLOPS_PUBLISHED,    // the convention of the published table
    FLOPS_FULL,         // full square of attention, true KV heads
    FLOPS_CAUSAL,       // half of the attention square
    FLOPS_6N,           // per token 6 N + 12 L h s (torchtitan)
    FLOPS_HARDWARE,     // FLOPs that the step executes; only a plan has them
    FLOPS_COUNT
};
extern const char *const       model_flop_names[];
extern const struct json_field model_flop_fields[];    // of an array indexed by convention

// Whether a published memory figure counts allocated or reserved memory of the caching allocator.
enum published_memory { MEMORY_ALLOCATED, MEMORY_RESERVED };

// [published]: a published result, and how its table counts.
struct published_config {
    char    source[128];
    char    device[64];          // that was measured; "": the device of the file's [hardware] profile
    char    variant[40];         // one of several settings in the file; "": the file has one
    int64_t convention;          // FLOPS_FULL, FLOPS_CAUSAL or FLOPS_6N; 0: no published table
    int64_t flop_kv_heads;       // that the table counted; 0: the model's
    int64_t flop_digits;         // significant digits of the table's FLOPs per sequence; 0: exact
    int64_t count_embedding;     // 6n: N includes the input embedding
    double  peak[RATE_COUNT];    // "peak_fp32", ...: FLOP/s that the table's MFU refers to; 0: none
    double  step_seconds;        // 0: not published
    double  mfu_percent;         // 0: not published
    double  memory_gib;          // maximum over ranks; 0: not published
    int64_t memory;              // enum published_memory
    int64_t fitted;              // the cost model is fitted to these step times
};
extern const struct option published_options[];
