// SPDX-License-Identifier: MIT
// Attention over keys and values of a whole sequence whose queries are sharded over the ranks of cp.
#ifndef GSWBENCH_LAYERS_CONTEXT_H
#define GSWBENCH_LAYERS_CONTEXT_H

#include "kind.h"

void context_attention(struct sublayer *sublayer);
// The gradients of q and kv of this rank, from that of the attention output.
void context_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
void ring_attention(struct sublayer *sublayer);
void ring_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
// Where heads are exchanged for positions: [T, heads, ...] of the own positions to [T cp, heads / cp, ...], with the
// pieces of a token that have all heads each; and back, into out.
bool    context_exchanges(const struct builder *builder);
int32_t context_to_heads(struct builder *builder, const char *role, int32_t in, int64_t pieces);
void    context_to_positions(struct builder *builder, const char *role, int32_t in, int64_t pieces, int32_t out);
void    exchange_attention(struct sublayer *sublayer);
void    exchange_attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t dq, int32_t dkv);
// Rows first .. first + rows - 1 of a [rows, ...] tensor.
int32_t context_rows(struct builder *builder, const char *name, int32_t whole, int64_t first, int64_t rows);
// The queries of a rank of cp are runs of positions: of each sequence in order, one from either end.
enum { HALVES = 2 };
int64_t context_chunk(const struct builder *builder, int64_t rank, int half);    // its number in the sequence
int64_t context_runs(const struct builder *builder);
int32_t context_run(struct builder *builder, int32_t whole, int64_t run);    // of [T, ...] or [runs, ...]
int32_t context_statistics(struct builder *builder, int64_t runs);
// An attention op of a run on so many keys, and the inputs of its backward pass but for the keys.
struct op context_op(const struct builder *builder, enum op_kind kind, const char *role, int64_t keys);
void      context_gradient_inputs(struct sublayer *sublayer, struct op *op, int32_t gradient, int64_t run);

#endif
