// SPDX-License-Identifier: MIT
// Attention by cuDNN's fused engines, planned once for each shape. Without cuDNN, opening it says why.
#ifndef GSWBENCH_CUDNN_ATTENTION_H
#define GSWBENCH_CUDNN_ATTENTION_H

#include "gswbench/backend.h"

struct cudnn_attention;
struct cudnn_entry;    // what one shape was planned as

status cudnn_attention_open(struct cudnn_attention **attention);
void   cudnn_attention_close(struct cudnn_attention *attention);
// Plans the op; or why cuDNN cannot do it. What was planned lives as long as the attention, and is the same for ops of
// one shape: several plans, of which the first is taken.
status cudnn_attention_prepare(struct cudnn_attention *attention, const struct op *op, struct cudnn_entry **planned);
// From whoever has timed or tried the plans. refuse: why none is to be taken; prepare then fails with it.
int  cudnn_attention_plans(const struct cudnn_entry *entry);
void cudnn_attention_take(struct cudnn_entry *entry, int plan);
void cudnn_attention_refuse(struct cudnn_entry *entry, const status *refusal);
// Of the plan that is taken: cuDNN's number of its engine, and bytes of scratch that its execution needs.
int64_t cudnn_attention_engine(const struct cudnn_entry *entry);
int64_t cudnn_attention_scratch(const struct cudnn_entry *entry);
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
