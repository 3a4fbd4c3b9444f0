// SPDX-License-Identifier: MIT
// Attention by cuDNN's fused engines, planned once for each shape. Without cuDNN, opening it says why.
#ifndef GSWBENCH_CUDNN_ATTENTION_H
#define GSWBENCH_CUDNN_ATTENTION_H

#include "gswbench/backend.h"

struct cudnn_attention;
struct cudnn_entry;    // what one shape was planned as

status cudnn_attention_open(struct cudnn_attention **attention);
void   cudnn_attention_close(struct cudnn_attention *attention);
// Plans the op; or why cuDNN cannot do it. Bytes of scratch that its execution needs. The plan lives as long as the
// attention, and is the same for ops of one shape.
status cudnn_attention_prepare(struct cudnn_attention *attention, const struct op *op,
                               const struct cudnn_entry **planned, int64_t *scratch);
// What an op is run with.
struct cudnn_memory {
    const struct buffer *buffers;    // [OP_OPERANDS]
    void                *scratch, *stream;
};
// Enqueues an op that was prepared. Gradients of queries, keys and values are written, never added to.
status cudnn_attention_run(struct cudnn_attention *attention, const struct cudnn_entry *entry, const struct op *op,
                           const struct cudnn_memory *memory);
// "cuDNN 9.19.0"
void cudnn_attention_version(const struct cudnn_attention *attention, char *text, size_t bytes);

#endif
