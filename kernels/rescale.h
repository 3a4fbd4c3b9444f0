// SPDX-License-Identifier: MIT
// The largest magnitude of an array, and scales of FP8 from those of many steps.
// Bound by memory: an array is read once; histories, which are short, are read and written.
#ifndef GSWBENCH_KERNELS_RESCALE_H
#define GSWBENCH_KERNELS_RESCALE_H

#include "gswbench/format.h"
#include "launch.h"

struct magnitude_args {
    const void *in;           // [elements]
    float      *magnitude;    // [1]: raised to the largest magnitude
    int64_t     elements;
    enum format type;
};
KERNEL_FUNCTION int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target);

struct rescale_args {
    float  *magnitude;    // [slots]: of the step; becomes 0
    float  *history;      // [slots, history], may be absent: moves on by one, and takes it in front
    float  *scale;        // [slots]: target / the largest of the history
    float  *factor;       // [slots]: 1 / scale
    int64_t slots, length;
    float   target;
};
KERNEL_FUNCTION int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target);

#endif
