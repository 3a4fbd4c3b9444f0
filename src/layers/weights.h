// SPDX-License-Identifier: MIT
// The weights of the chunks on this rank, declared in units.
#ifndef GSWBENCH_LAYERS_WEIGHTS_H
#define GSWBENCH_LAYERS_WEIGHTS_H

#include "builder.h"

void    weights_declare(struct builder *builder);
int64_t weights_linears(const struct model_config *model);    // that FP8 may compute, in a layer

#endif
