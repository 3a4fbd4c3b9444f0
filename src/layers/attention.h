// SPDX-License-Identifier: MIT
// The values of attention, and what its files share: context parallelism has two of its own.
#ifndef GSWBENCH_LAYERS_ATTENTION_H
#define GSWBENCH_LAYERS_ATTENTION_H

#include "kind.h"

enum { WEIGHT_QKV = WEIGHT_OWN, WEIGHT_PROJECTION, WEIGHT_HEAD_NORM, WEIGHT_SINKS };
enum {
    VALUE_QKV = VALUE_OWN,    // [T, (heads + 2 kv_heads) head_dim]
    VALUE_Q,                  // [T, heads, head_dim], after rope
    VALUE_KV,                 // [T, 2, kv_heads, head_dim], after rope
    VALUE_O,                  // attention output [T, heads, head_dim]
    VALUE_LSE,                // [batch, heads, sequence]; under cp [runs, heads, sequence / HALVES]
};

// One attention op: forward (gradient -1) or backward over a run of queries and the keys before and among them.
struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role);

#endif
