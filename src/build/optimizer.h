// SPDX-License-Identifier: MIT
// End of a step: gradient norm, clipping, optimizer.
#ifndef GSWBENCH_BUILD_OPTIMIZER_H
#define GSWBENCH_BUILD_OPTIMIZER_H

#include "gswbench/builder.h"

void optimizer_append(struct builder *builder);

#endif
