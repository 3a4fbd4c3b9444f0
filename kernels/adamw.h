// SPDX-License-Identifier: MIT
// AdamW on a range of a parameter group, in one launch. Memory-bound: 30 bytes per weight with fp32 gradients, master
// weights and moments.
#ifndef GSWBENCH_KERNELS_ADAMW_H
#define GSWBENCH_KERNELS_ADAMW_H

#include "gswbench/format.h"
#include "launch.h"

// Hyperparameters of a step, in device memory.
struct adamw_hyper {
    float learning_rate, beta1, beta2, epsilon, decay;
    float correction1, correction2;    // 1 - beta^step
};

struct adamw_args {
    const struct adamw_hyper *hyper;
    const float              *scale;             // [1]: gradient scale of clipping
    const void               *gradient;          // [elements], like all arrays below
    float                    *master;            // master weights; NULL: weight is updated directly
    void                     *first, *second;    // moments
    void                     *weight;            // may be NULL with master weights
    float                    *magnitude;         // [1] or NULL: raised to the amax of the stored weights
    int64_t                   elements;
    enum format               gradient_type, moment, weight_type;
};
KERNEL_FUNCTION int kernel_adamw(const struct adamw_args *args, const struct kernel_target *target);

#endif
