// SPDX-License-Identifier: MIT
// The shape of a transformer: sizes, what its blocks are made of, and the conventions of published FLOPs.
#ifndef GSWBENCH_MODEL_H
#define GSWBENCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/json.h"
#include "gswbench/op_shape.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

// How a model knows where a token stands: heads of queries and keys rotate; a row of a trained table is added to the
// embedding; scores fall with the distance of the key, in each head by its own slope; or not at all.
enum positions { POSITIONS_ROTARY, POSITIONS_LEARNED, POSITIONS_ALIBI, POSITIONS_NONE, POSITIONS_COUNT };

// What the gates of a token's experts multiply: what these make of it, or what they are given.
enum router_gates { GATES_OUTPUT, GATES_INPUT };

// [model]
struct model_config {
    char    preset[112];     // configs/models/NAME.ini; its values are set before this section's
    char    family[32];      // whose tensor names are exported: one of model_families, or gswbench
    char    pattern[128];    // the kinds of each layer; empty: all layers are alike
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t q_rank, kv_rank, rope_dim, value_dim;    // of latent attention; kv_rank 0: attention is plain
    int64_t vocab_multiple;                          // vocabulary padded to a multiple of this times tp
    int64_t activation, norm;                        // enum activation, enum norm
    double  norm_epsilon, latent_norm_epsilon;       // the latter: of compressed queries, keys and values
    int64_t positions;                               // enum positions
    int64_t max_positions;                           // rows of the table of learned ones
    double  rope_theta, rope_fraction;
    double  rope_scaling;                        // Llama 3.1 frequency scaling; 1: none
    int64_t qk_norm;                             // queries and keys are normalised, head by head
    int64_t window;                              // positions that a query of a windowed layer sees; 0: no such layers
    int64_t attention_sinks;                     // each head has a score that no key belongs to
    int64_t attention_bias, mlp_bias;            // of their linears, of experts' too
    int64_t router_offset;                       // the router's logits have a bias, which is trained
    int64_t tied;                                // the head shares the embedding table
    double  embedding_scale, logit_scale;        // what rows of the table and logits are multiplied by
    int64_t predicted_tokens;                    // behind the next one, each by a layer behind the last
    int64_t experts, expert_ffn, top_k;          // of layers that have experts
    int64_t shared_ffn;                          // ... width of what all tokens share; 0: nothing
    int64_t router_score;                        // enum router_score
    int64_t router_gates;                        // enum router_gates
    int64_t router_normalise;                    // gates of a token add up to router_scale
    int64_t router_groups, router_top_groups;    // experts are chosen from so many of these groups; 0: there are none
    double  router_scale, router_bias_rate;      // 0: no bias
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
int64_t model_kv_width(const struct model_config *model);        // kv_heads * head_dim, of K alone
int64_t model_key_dim(const struct model_config *model);         // of a head of queries and keys, as attention reads it
int64_t model_value_dim(const struct model_config *model);       // of a head of values
int64_t model_rotary_width(const struct model_config *model);    // rotated elements of a head: even, or 0
int64_t model_expert_ffn(const struct model_config *model);
int64_t model_all_layers(const struct model_config *model);    // with those that predict further tokens
int64_t model_padded_vocab(const struct model_config *model, int64_t tp);

// A family whose tensors and config.json are named as Hugging Face's classes do. Its layers are all the same, or with
// latent attention as DeepSeek-V3's: the first ones dense, all others with experts.
struct model_family {
    const char *name;            // as [model] family and model_type have it; NULL ends the list
    const char *architecture;    // the class
    bool        has_experts, has_qk_norm, has_latent_attention;
};
extern const struct model_family model_families[];
const struct model_family       *model_family_of(const struct model_config *model);    // NULL: gswbench's own names

// FLOP conventions: docs/method.md has the formulas.
enum flop_convention {
    FLOPS_PUBLISHED,    // what the published table of this system used
    FLOPS_FULL,         // full square of attention, true KV heads
    FLOPS_CAUSAL,       // half of it
    FLOPS_6N,           // per token 6 N + 12 L h s (torchtitan)
    FLOPS_HARDWARE,     // what the step really executes: known by the plan, not here
    FLOPS_COUNT
};
extern const char *const       model_flop_names[];
extern const struct json_field model_flop_fields[];    // of an array of them

// What a figure of memory counts: what was given out, or all that the allocator has taken from the device.
enum published_memory { MEMORY_ALLOCATED, MEMORY_RESERVED };

// [published]: what the published table of this system counted and reported.
struct published_config {
    char    source[128];
    char    device[64];          // that it was measured on; "": the one of the file's [hardware] profile
    char    variant[40];         // which of several settings of the file; "": its only ones
    int64_t convention;          // FLOPS_FULL, FLOPS_CAUSAL or FLOPS_6N; 0: there is no published table
    int64_t flop_kv_heads;       // KV heads that the table counted; 0: the model's
    int64_t flop_digits;         // significant digits the table rounded FLOPs per sequence to; 0: exact
    int64_t count_embedding;     // 6n: N includes the input embedding
    double  peak[RATE_COUNT];    // "peak_fp32", ...: FLOP/s that the table's MFU is against; 0: none
    double  step_seconds;        // 0: not published
    double  mfu_percent;         // 0: not published
    double  memory_gib;          // the most that a rank held; 0: not published
    int64_t memory;              // enum published_memory: what that counts
    int64_t fitted;              // values of the predictor are fitted to these step times
};
extern const struct option published_options[];

#endif
