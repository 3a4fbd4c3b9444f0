// SPDX-License-Identifier: MIT
// Replaces the cudnn folder in a build without cuDNN's headers.
#include "../cudnn_attention.h"
#include "gswbench/fatal.h"

status cudnn_attention_open(struct cudnn_attention **attention)
{
    (void)attention;
    return fail("this build was made without cuDNN's headers");
}

void cudnn_attention_close(struct cudnn_attention *attention)
{
    (void)attention;
}

status cudnn_attention_prepare(struct cudnn_attention *attention, const struct op *op, struct cudnn_entry **planned)
{
    (void)attention, (void)op, (void)planned;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

int cudnn_attention_plans(const struct cudnn_entry *entry)
{
    (void)entry;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

void cudnn_attention_take(struct cudnn_entry *entry, int plan)
{
    (void)entry, (void)plan;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

void cudnn_attention_refuse(struct cudnn_entry *entry, const status *refusal)
{
    (void)entry, (void)refusal;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

int64_t cudnn_attention_engine(const struct cudnn_entry *entry)
{
    (void)entry;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

int64_t cudnn_attention_scratch(const struct cudnn_entry *entry)
{
    (void)entry;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

status cudnn_attention_run(struct cudnn_attention *attention, const struct cudnn_entry *entry, const struct op *op,
                           const struct cudnn_memory *memory)
{
    (void)attention, (void)entry, (void)op, (void)memory;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}

void cudnn_attention_version(const struct cudnn_attention *attention, char *text, size_t bytes)
{
    (void)attention, (void)text, (void)bytes;
    FATAL(EXIT_INTERNAL, "cuDNN is not here");
}
