// SPDX-License-Identifier: MIT
// The residual sum and the norm of it, and their gradient.
#ifndef GSWBENCH_LAYERS_NORM_H
#define GSWBENCH_LAYERS_NORM_H

#include "builder.h"

struct norm_values {
    int32_t x, branch, weight, bias;    // in; branch -1: no addition
    int32_t sum, out, statistics;       // out; sum == x without a branch
    double  epsilon;                    // 0: the model's norm_epsilon
};
void norm_forward(struct builder *builder, const char *role, struct norm_values *norm);
// Returns the gradient of sum: the norm's own, plus residual when it is not -1.
int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual);

#endif
