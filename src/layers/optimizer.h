// SPDX-License-Identifier: MIT
// The end of a step: gradient norm, clipping, updates.
#ifndef GSWBENCH_LAYERS_OPTIMIZER_H
#define GSWBENCH_LAYERS_OPTIMIZER_H

#include "builder.h"

void optimizer_append(struct builder *builder);

// Whether this rank's loss is a part of the job's: of those that have the same, one's is.
bool optimizer_counts_loss(const struct plan *plan);

#endif
