// SPDX-License-Identifier: MIT
// The activation of an MLP or expert.
#ifndef GSWBENCH_LAYERS_ACTIVATION_H
#define GSWBENCH_LAYERS_ACTIVATION_H

#include "gswbench/builder.h"

int32_t activation_forward(struct builder *builder, int32_t in);
int32_t activation_backward(struct builder *builder, int32_t gradient, int32_t in);    // in: input of the forward pass

#endif
