// SPDX-License-Identifier: MIT
// Attention by cuDNN's fused engines, planned once per shape. Without cuDNN, cudnn_attention_open fails with the
// reason.
#pragma once

#include "gswbench/backend.h"

struct cudnn_attention;
struct cudnn_entry;    // plans of one shape

status cudnn_attention_open(struct cudnn_attention **attention);
void   cudnn_attention_close(struct cudnn_attention *attention);
// Plans the op, or fails with cuDNN's reason. Ops of one shape share an entry, which lives until cudnn_attention_close.
// An entry has several plans; the first is selected.
status cudnn_attention_prepare(struct cudnn_attention *attention, const struct op *op, struct cudnn_entry **planned);
// Selection by the caller, who runs or times the plans. After refuse, prepare fails with the given status.
int  cudnn_attention_plans(const struct cudnn_entry *entry);
void cudnn_attention_take(struct cudnn_entry *entry, int plan);
void cudnn_attention_refuse(struct cudnn_entry *entry, const status *refusal);
// cuDNN's engine number and scratch bytes of the selected plan.
int64_t cudnn_attention_engine(const struct cudnn_entry *entry);
int64_t cudnn_attention_scratch(const struct cudnn_entry *entry);
struct cudnn_memory {
    const struct buffer *buffers;    // [OP_OPERANDS]
    void                *scratch, *stream;
};
// Enqueues a prepared op. It overwrites the gradients of queries, keys and values and never accumulates.
status cudnn_attention_run(struct cudnn_attention *attention, const struct cudnn_entry *entry, const struct op *op,
                           const struct cudnn_memory *memory);
// "cuDNN 9.19.0"
void cudnn_attention_version(const struct cudnn_attention *attention, char *text, size_t bytes);
