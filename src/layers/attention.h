// SPDX-License-Identifier: MIT
// The values of attention, and what its files share: context parallelism has two of its own.
#ifndef GSWBENCH_LAYERS_ATTENTION_H
#define GSWBENCH_LAYERS_ATTENTION_H

#include "kind.h"

enum { WEIGHT_QKV = WEIGHT_OWN, WEIGHT_PROJECTION, WEIGHT_HEAD_NORM, WEIGHT_SINKS, WEIGHT_ATTENTION_END };
enum {
    VALUE_QKV = VALUE_OWN,    // [T, (heads + 2 kv_heads) head_dim]
    VALUE_Q,                  // [T, heads, key_dim], after rope
    VALUE_KV,                 // [T, kv_heads (key_dim + value_dim)], keys then values, after rope
    VALUE_O,                  // attention output [T, heads, value_dim]
    VALUE_LSE,                // [batch, heads, sequence]; under cp [runs, heads, sequence / HALVES]
    VALUE_HEADS_O,            // where heads are exchanged: the output of this rank's, for all positions
    VALUE_ATTENTION_END,
};

extern const struct norm_names attention_norm;

// One attention op: forward (gradient -1) or backward over a run of queries and the keys before and among them.
struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role);
// Queries, what attention makes of them, or keys with values, of so many tokens; or their gradients.
int32_t attention_new_query(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_out(struct builder *builder, const char *name, int64_t tokens);
int32_t attention_new_key_value(struct builder *builder, const char *name, int64_t tokens);

// The steps behind rope, whichever kind has made what they read.
void attention_append(struct sublayer *sublayer);
void attention_append_projection(struct sublayer *sublayer);
// From the gradient of VALUE_OUT to that of VALUE_Q, which is returned, and that of VALUE_KV.
int32_t attention_backward(struct sublayer *sublayer, int32_t gradient, int32_t *dkv);

#endif
