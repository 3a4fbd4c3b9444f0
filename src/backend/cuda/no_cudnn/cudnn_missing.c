// SPDX-License-Identifier: MIT
// Replaces the folder cudnn in a build without cuDNN's headers.
#include "../cudnn_attention.h"
#include "gswbench/fatal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

status cudnn_attention_open(struct cudnn_attention **attention)
{
    return fail("this build was made without cuDNN's headers");
}

// These functions are never called, because cudnn_attention_open fails.
#define UNUSED(type, name, ...)                                                                                        \
    type name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        FATAL(EXIT_INTERNAL, "cuDNN is not here");                                                                     \
    }
UNUSED(void, cudnn_attention_close, struct cudnn_attention *attention)
UNUSED(status, cudnn_attention_prepare, struct cudnn_attention *attention, const struct op *op,
       struct cudnn_entry **planned)
UNUSED(int64_t, cudnn_attention_engine, const struct cudnn_entry *entry)
UNUSED(int64_t, cudnn_attention_scratch, const struct cudnn_entry *entry)
UNUSED(status, cudnn_attention_run, struct cudnn_attention *attention, const struct cudnn_entry *entry,
       const struct op *op, const struct cudnn_memory *memory)
UNUSED(void, cudnn_attention_version, const struct cudnn_attention *attention, char *text, size_t bytes)
