// SPDX-License-Identifier: MIT
// End of a step: gradient norm, clipping, optimizer.
#ifndef GSWBENCH_LAYERS_OPTIMIZER_H
#define GSWBENCH_LAYERS_OPTIMIZER_H

#include "builder.h"

void optimizer_append(struct builder *builder);

// Whether this rank's loss counts: one of the ranks with the same loss does.
bool optimizer_counts_loss(const struct plan *plan);

#endif
