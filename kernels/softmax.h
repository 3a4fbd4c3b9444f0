// SPDX-License-Identifier: MIT
// Online softmax denominator: maximum so far and the sum of exponentials relative to it. Compiles as C and as CUDA.
#ifndef GSWBENCH_KERNELS_SOFTMAX_H
#define GSWBENCH_KERNELS_SOFTMAX_H

#include <math.h>

#include "gswbench/arithmetic.h"

// sum is of exp(x - maximum). The initial maximum is finite, so that the difference of two empty states is not NaN.
struct softmax {
    float maximum, sum;
};
#define SOFTMAX_EMPTY ((struct softmax){-3.402823466e+38f, 0.0f})

// Adds count values and rescales the sum to the new maximum.
GSWBENCH_INLINE void softmax_add(struct softmax *softmax, const float *values, int count)
{
    float maximum = softmax->maximum;
    for (int i = 0; i < count; i++) {
        maximum = fmaxf(maximum, values[i]);
    }
    float sum = softmax->sum * arithmetic_exp(softmax->maximum - maximum);
    for (int i = 0; i < count; i++) {
        sum += arithmetic_exp(values[i] - maximum);
    }
    softmax->maximum = maximum;
    softmax->sum     = sum;
}

// The sum relative to a maximum that is at least softmax.maximum.
GSWBENCH_INLINE float softmax_sum_at(struct softmax softmax, float maximum)
{
    return softmax.sum * arithmetic_exp(softmax.maximum - maximum);
}

#endif
