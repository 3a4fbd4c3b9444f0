// SPDX-License-Identifier: MIT
// What the pipeline has to know of the head: the table that it multiplies by, and what it leaves for later.
#ifndef GSWBENCH_LAYERS_HEAD_H
#define GSWBENCH_LAYERS_HEAD_H

#include "builder.h"

int32_t head_table(const struct builder *builder);        // a weight: its own, or the embedding's when tied
void    head_append_deferred(struct builder *builder);    // weight gradients that were left for later; there are some

#endif
