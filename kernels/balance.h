// SPDX-License-Identifier: MIT
// Updates the router biases that balance expert load, once per step.
#ifndef GSWBENCH_KERNELS_BALANCE_H
#define GSWBENCH_KERNELS_BALANCE_H

#include "launch.h"

struct balance_args {
    const float *loads;    // [layers, experts + 2]: choices per expert, then two other statistics
    float       *bias;     // [layers, experts]
    const float *scale;    // gradient clipping factor; NaN: no update
    int64_t      layers, experts;
    float        rate;
};
KERNEL_FUNCTION int kernel_balance(const struct balance_args *args, const struct kernel_target *target);

#endif
