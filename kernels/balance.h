// SPDX-License-Identifier: MIT
// What experts are chosen with, beside their scores, follows their loads: a few numbers a step.
#ifndef GSWBENCH_KERNELS_BALANCE_H
#define GSWBENCH_KERNELS_BALANCE_H

#include "launch.h"

struct balance_args {
    const float *loads;    // [layers, experts + 2]: how often each was chosen, and two other numbers
    float       *bias;     // [layers, experts]
    const float *scale;    // of clipping: where it is NaN, nothing is changed
    int64_t      layers, experts;
    float        rate;
};
KERNEL_FUNCTION int kernel_balance(const struct balance_args *args, const struct kernel_target *target);

#endif
