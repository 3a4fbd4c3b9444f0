// SPDX-License-Identifier: MIT
// The weights of this rank's chunks, in units.
#ifndef GSWBENCH_LAYERS_WEIGHTS_H
#define GSWBENCH_LAYERS_WEIGHTS_H

#include "builder.h"

void    weights_declare(struct builder *builder);
int64_t weights_linears(const struct model_config *model);    // linears of a layer that can run in FP8

#endif
