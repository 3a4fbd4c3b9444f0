// SPDX-License-Identifier: MIT
// Attention graphs and the ids of their tensors.
#ifndef GSWBENCH_CUDNN_ATTENTION_GRAPH_H
#define GSWBENCH_CUDNN_ATTENTION_GRAPH_H

#include "cudnn_graph.h"
#include "gswbench/op.h"

enum cudnn_attention_id {
    CUDNN_ATTENTION_QUERY = 1,
    CUDNN_ATTENTION_KEY,
    CUDNN_ATTENTION_VALUE,
    CUDNN_ATTENTION_OUT,
    CUDNN_ATTENTION_STATISTICS,
    CUDNN_ATTENTION_OUT_GRADIENT,
    CUDNN_ATTENTION_QUERY_GRADIENT,
    CUDNN_ATTENTION_KEY_GRADIENT,
    CUDNN_ATTENTION_VALUE_GRADIENT,
    CUDNN_ATTENTION_QUERY_SUM,    // f32 [batch, heads, sequence, head_dim]: scratch
    CUDNN_ATTENTION_ROW_SUM,      // f32 [batch, heads, sequence]: scratch
    CUDNN_ATTENTION_SCALE,
    CUDNN_ATTENTION_MINUS_INFINITY,
    CUDNN_ATTENTION_ONE,
    CUDNN_ATTENTION_EARLIER,
    CUDNN_ATTENTION_WINDOW,
    CUDNN_ATTENTION_ID_COUNT
};

// Builds the op's graph. It needs no device.
void cudnn_attention_describe(struct cudnn_graph *graph, const struct op *op);

#endif
