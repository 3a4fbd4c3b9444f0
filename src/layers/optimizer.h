// SPDX-License-Identifier: MIT
// The end of a step: gradient norm, clipping, updates.
#ifndef GSWBENCH_LAYERS_OPTIMIZER_H
#define GSWBENCH_LAYERS_OPTIMIZER_H

#include "builder.h"

void optimizer_append(struct builder *builder);

#endif
