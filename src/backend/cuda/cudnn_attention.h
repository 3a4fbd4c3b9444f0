// SPDX-License-Identifier: MIT
// Runs attention with cuDNN's fused engines, planned once per op kind and shape. If cuDNN is not installed,
// cudnn_attention_open fails with the reason.
#pragma once

#include "gswbench/backend.h"

// The plans of one op kind and shape, which ops share until cudnn_attention_close.
struct cudnn_entry {
    struct prepared     prepared;    // for the caller; zero at first
    uint8_t             kind;
    int                 count, taken;    // number of plans; the selected plan, at first 0
    status              refusal;         // why no plan can run; cudnn_attention_prepare then fails with it
    struct cudnn_entry *next;
};
struct cudnn_attention {
    struct cudnn_entry *entries;
};

status cudnn_attention_open(struct cudnn_attention **attention);
void   cudnn_attention_close(struct cudnn_attention *attention);
// Makes plans for the op's kind and shape, or fails with cuDNN's reason.
status cudnn_attention_prepare(struct cudnn_attention *attention, const struct op *op, struct cudnn_entry **planned);
// Return the engine number and the scratch bytes of the selected plan.
int64_t cudnn_attention_engine(const struct cudnn_entry *entry);
int64_t cudnn_attention_scratch(const struct cudnn_entry *entry);
struct cudnn_memory {
    const struct buffer *buffers;    // [OP_OPERANDS]
    void                *scratch, *stream;
};
// Enqueues a prepared op. Gradients of queries, keys and values are overwritten, never accumulated.
status cudnn_attention_run(struct cudnn_attention *attention, const struct cudnn_entry *entry, const struct op *op,
                           const struct cudnn_memory *memory);
// Writes name and version: "cuDNN 9.19.0".
void cudnn_attention_version(const struct cudnn_attention *attention, char *text, size_t bytes);
