// SPDX-License-Identifier: MIT
// Declares the values (activations) and helpers of attention, sinks and context parallelism. tokens: tokens of a
// microbatch on this rank.
#pragma once

#include "gswbench/layer_kind.h"

enum { WEIGHT_QKV = WEIGHT_OWN, WEIGHT_PROJECTION, WEIGHT_HEAD_NORM, WEIGHT_SINKS, WEIGHT_ATTENTION_END };
enum {
    VALUE_QKV = VALUE_OWN,    // [tokens, (heads + 2 kv_heads) head_dim]
    VALUE_Q,     // [tokens, heads, key_dim], after RoPE; with Ulysses: all positions and a part of the heads
    VALUE_KV,    // [tokens, kv_heads (key_dim + value_dim)]: keys, then values, after RoPE; with Ulysses: all
                 // positions and a part of the heads
    VALUE_O,     // attention output [tokens, heads, value_dim]
    // Log-sum-exp of attention [batch, heads, sequence on this rank]. With all-gathered or ring cp [chunks on this
    // rank, heads, chunk length]; with Ulysses: all positions and a part of the heads.
    VALUE_LSE,
    VALUE_HEADS_O,    // Ulysses: attention output for all positions and a part of the heads
    VALUE_ATTENTION_END,
};

extern const struct norm_names attention_norm;

// Returns an attention op of this kind without operands, with the shape of the current layer on this rank.
struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role);
// Return new tensors for queries, attention outputs, or keys and values of this number of tokens. Their gradients have
// the same shapes.
int32_t attention_new_query(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_out(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_key_value(struct builder *builder, const char *name, int64_t tokens);

// attention_projection_adapter returns the number of parameters of the LoRA adapter of an output projection with `in`
// inputs. attention_adapt_projection declares the adapter; the projection must be declared before it.
int64_t attention_projection_adapter(const struct model_config *model, int64_t in);
void    attention_adapt_projection(struct declarations *declarations);

// Append core attention and the output projection, for plain and latent attention.
void attention_append(struct sublayer *sublayer);
void attention_append_projection(struct sublayer *sublayer);
// Appends the backward pass of core attention and projection. gradient: the gradient of VALUE_OUT. Returns the gradient
// of VALUE_Q, and sets dkv to the gradient of VALUE_KV. Returns -1 if no weight before the projection is trained.
int32_t attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t *dkv);

// Appends core attention with sequences sharded over cp.
void context_attention(struct sublayer *sublayer);
// Appends the gradients dq of VALUE_Q and dkv of VALUE_KV from the gradient of the attention output.
void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
// Parts of a row: queries and attention outputs have one, keys and values two (all keys, then all values).
enum { QUERY_PIECES = 1, KEY_VALUE_PIECES = 2 };
// context_is_ulysses returns whether cp uses Ulysses. context_to_heads appends its all-to-all: from [tokens, heads,
// ...] with this rank's positions to [tokens * cp, heads / cp, ...] with all positions. pieces: parts of a row of `in`,
// QUERY_PIECES or KEY_VALUE_PIECES.
bool    context_is_ulysses(const struct builder *builder);
int32_t context_to_heads(struct builder *builder, const char *role, int32_t in, int64_t pieces);
int64_t context_runs(const struct builder *builder);    // number of sequence chunks on this rank, two per sequence
