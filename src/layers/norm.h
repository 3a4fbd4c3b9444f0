// SPDX-License-Identifier: MIT
// Residual addition with the following norm, and the gradient of both.
#ifndef GSWBENCH_LAYERS_NORM_H
#define GSWBENCH_LAYERS_NORM_H

#include "builder.h"

struct norm_values {
    int32_t x, branch, weight, bias;    // inputs; branch -1: no addition
    int32_t sum, out, statistics;       // outputs; sum == x without a branch
    double  epsilon;                    // 0: [model] norm_epsilon
};
void norm_forward(struct builder *builder, const char *role, struct norm_values *norm);
// Returns the gradient of sum, with residual added if it is not -1.
int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual);

#endif
