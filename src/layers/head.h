// SPDX-License-Identifier: MIT
// The head, as the pipeline sees it.
#ifndef GSWBENCH_LAYERS_HEAD_H
#define GSWBENCH_LAYERS_HEAD_H

#include "builder.h"

int32_t head_table(const struct builder *builder);        // output table in plan->weights: the embedding's if tied
void    head_append_deferred(struct builder *builder);    // call only if deferred_count > 0

#endif
