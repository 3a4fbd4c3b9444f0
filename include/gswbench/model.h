// SPDX-License-Identifier: MIT
// The shape of a transformer: sizes, block kinds, parameter counts and FLOPs by convention.
#ifndef GSWBENCH_MODEL_H
#define GSWBENCH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

enum activation { ACTIVATION_SWIGLU, ACTIVATION_GEGLU, ACTIVATION_GELU, ACTIVATION_RELU2, ACTIVATION_COUNT };
enum norm { NORM_RMS, NORM_LAYER, NORM_LAYER_1P, NORM_COUNT };

// [model]
struct model_config {
    char    preset[64];    // configs/models/NAME.ini; its values are set before this section's
    char    family[32];    // names of the exported tensors: llama, mixtral, or gswbench
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int64_t vocab_multiple;      // vocabulary padded to a multiple of this times tp
    int64_t activation, norm;    // enum activation, enum norm
    double  norm_epsilon;
    double  rope_theta, rope_fraction;
    double  rope_scaling;      // Llama 3.1 frequency scaling; 1: none
    int64_t tied;              // the head shares the embedding table
    int64_t experts, top_k;    // experts 0: dense
    double  capacity_factor, auxiliary_loss;
    double  init_deviation;
};
extern const struct option model_options[];
extern const char *const   model_activation_names[];
extern const char *const   model_norm_names[];

// Divisibility and combinations within the section.
status model_check(const struct model_config *model);

bool    model_is_gated(const struct model_config *model);
bool    model_norm_has_bias(const struct model_config *model);
int64_t model_query_width(const struct model_config *model);     // heads * head_dim
int64_t model_kv_width(const struct model_config *model);        // kv_heads * head_dim, of K alone
int64_t model_rotary_width(const struct model_config *model);    // rotated elements of a head: even
int64_t model_padded_vocab(const struct model_config *model, int64_t tp);

// Parameters without vocabulary padding. Active: the experts that one token uses.
int64_t model_parameters(const struct model_config *model);
int64_t model_active_parameters(const struct model_config *model);

// FLOP conventions: docs/method.md has the formulas.
enum flop_convention {
    FLOPS_PUBLISHED,    // what the published table of this system used
    FLOPS_FULL,         // full square of attention, true KV heads
    FLOPS_CAUSAL,       // half of it
    FLOPS_6N,           // per token 6 N + 12 L h s (torchtitan)
    FLOPS_HARDWARE,     // what the step really executes: known by the plan, not here
    FLOPS_COUNT
};
extern const char *const model_flop_names[];

// [published]: what the published table of this system counted and reported.
struct published_config {
    char    source[128];
    int64_t convention;             // FLOPS_FULL, FLOPS_CAUSAL or FLOPS_6N; 0: there is no published table
    int64_t flop_kv_heads;          // KV heads that the table counted; 0: the model's
    int64_t flop_digits;            // significant digits the table rounded FLOPs per sequence to; 0: exact
    int64_t count_embedding;        // 6n: N includes the input embedding
    double  peak_bf16, peak_fp8;    // FLOP/s that the table's MFU is against; 0: none
    double  step_seconds;           // 0: not published
    double  mfu_percent;            // 0: not published
};
extern const struct option published_options[];

// Model FLOPs of one training step over one sequence (forward and backward). NaN for FLOPS_PUBLISHED without a
// published table, and for FLOPS_HARDWARE.
double model_flops(const struct model_config *model, const struct published_config *published,
                   enum flop_convention convention, int64_t sequence);

// The share of attention in these FLOPs.
double model_attention_share(const struct model_config *model, const struct published_config *published,
                             enum flop_convention convention, int64_t sequence);

#endif
