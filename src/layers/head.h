// SPDX-License-Identifier: MIT
// The output table of the head.
#ifndef GSWBENCH_LAYERS_HEAD_H
#define GSWBENCH_LAYERS_HEAD_H

#include "gswbench/builder.h"

int32_t head_table(const struct builder *builder);    // in plan->weights; the embedding's if tied

#endif
