// SPDX-License-Identifier: MIT
// Declares the values and helpers of attention, sinks and context parallelism. T: tokens of a microbatch on this rank.
#pragma once

#include "gswbench/layer_kind.h"

enum { WEIGHT_QKV = WEIGHT_OWN, WEIGHT_PROJECTION, WEIGHT_HEAD_NORM, WEIGHT_SINKS, WEIGHT_ATTENTION_END };
enum {
    VALUE_QKV = VALUE_OWN,    // [T, (heads + 2 kv_heads) head_dim]
    VALUE_Q,                  // [T, heads, key_dim], after rope; with Ulysses all positions and some heads
    VALUE_KV,                 // [T, kv_heads (key_dim + value_dim)], keys then values, after rope; with Ulysses as
                              // VALUE_Q
    VALUE_O,                  // attention output [T, heads, value_dim]
    VALUE_LSE,                // log-sum-exp [batch, heads, sequence]; under cp [runs, heads, sequence / HALVES]; with
                              // Ulysses as VALUE_HEADS_O
    VALUE_HEADS_O,            // Ulysses: attention output of this rank's heads for all positions
    VALUE_ATTENTION_END,
};

extern const struct norm_names attention_norm;

// An attention op without operands, with the shape for one forward or backward pass of the current layer.
struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role);
// New tensors for queries, attention outputs, or keys and values of this many tokens, or for their gradients.
int32_t attention_new_query(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_out(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_key_value(struct builder *builder, const char *name, int64_t tokens);

// LoRA adapter of the output projection, for plain and latent attention. The first function returns its number of
// parameters for `in` inputs of the projection. The second declares it; the projection is declared first.
int64_t attention_projection_adapter(const struct model_config *model, int64_t in);
void    attention_adapt_projection(struct declarations *declarations);

// Forward steps after rope, for plain and latent attention.
void attention_append(struct sublayer *sublayer);
void attention_append_projection(struct sublayer *sublayer);
// Takes the gradient of VALUE_OUT; returns the gradient of VALUE_Q, and sets dkv to the gradient of VALUE_KV. Returns
// -1 if no weight before the projection is trained.
int32_t attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t *dkv);

// Context parallelism: attention with sequences sharded over cp.
void context_attention(struct sublayer *sublayer);
// Computes the gradients of q and kv from the gradient of the attention output.
void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
// Ulysses all-to-all: from [T, heads, ...] for this rank's positions to [T cp, heads / cp, ...] for all positions.
// pieces: groups of heads per token (1 for queries, 2 for keys and values).
bool    context_exchanges(const struct builder *builder);
int32_t context_to_heads(struct builder *builder, const char *role, int32_t in, int64_t pieces);
int64_t context_runs(const struct builder *builder);    // runs of positions on this rank (HALVES)
