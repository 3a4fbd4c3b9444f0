// SPDX-License-Identifier: MIT
// AdamW over weights of a unit, one range of elements in all arrays, in one launch.
// Bound by memory: 30 bytes a weight with fp32 gradients, master weights and moments.
#ifndef GSWBENCH_KERNELS_ADAMW_H
#define GSWBENCH_KERNELS_ADAMW_H

#include "gswbench/format.h"
#include "launch.h"

// Of a step, in device memory.
struct adamw_hyper {
    float learning_rate, beta1, beta2, epsilon, decay;
    float correction1, correction2;    // 1 - beta^step
};

struct adamw_args {
    const struct adamw_hyper *hyper;
    const float              *scale;             // [1]: of the gradient
    const void               *gradient;          // [elements], as all that follow
    float                    *master;            // absent: the weights are their own
    void                     *first, *second;    // moments
    void                     *weight;            // may be absent beside a master
    float                    *magnitude;         // [1], may be absent: raised to the largest of the weights, as stored
    int64_t                   elements;
    enum format               gradient_type, moment, weight_type;
};
KERNEL_FUNCTION int kernel_adamw(const struct adamw_args *args, const struct kernel_target *target);

#endif
