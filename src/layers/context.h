// SPDX-License-Identifier: MIT
// Context parallelism: attention with sequences sharded over cp.
#ifndef GSWBENCH_LAYERS_CONTEXT_H
#define GSWBENCH_LAYERS_CONTEXT_H

#include "gswbench/layer_kind.h"

void context_attention(struct sublayer *sublayer);
// Computes the gradients of q and kv from the gradient of the attention output.
void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
void ring_attention(struct sublayer *sublayer);
void ring_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
// Ulysses all-to-all from [T, heads, ...] at own positions to [T cp, heads / cp, ...], and back into out. pieces:
// groups of heads per token (1 for queries, 2 for keys and values).
bool    context_exchanges(const struct builder *builder);
int32_t context_to_heads(struct builder *builder, const char *role, int32_t in, int64_t pieces);
void    context_to_positions(struct builder *builder, const char *role, int32_t in, int64_t pieces, int32_t out);
void    exchange_attention(struct sublayer *sublayer);
void    exchange_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
int64_t context_chunk(const struct builder *builder, int64_t rank, int half);    // index of a rank's chunk in the
                                                                                 // sequence
int64_t context_runs(const struct builder *builder);
int32_t context_run(struct builder *builder, int32_t whole, int64_t run);    // a run's rows of [T, ...] or [runs, ...]
int32_t context_statistics(struct builder *builder, int64_t runs);
// An attention op of one run on this many keys, and the operands of its backward pass except the keys.
struct op context_op(const struct builder *builder, enum op_kind kind, const char *role, int64_t keys);
void      context_gradient_inputs(struct sublayer *sublayer, struct op *op, int32_t gradient, int64_t run);

#endif
