// SPDX-License-Identifier: MIT
// amax of an array, and FP8 scales from an amax history (delayed scaling). Memory-bound: an array is read once; the
// short histories are read and written.
#ifndef GSWBENCH_KERNELS_RESCALE_H
#define GSWBENCH_KERNELS_RESCALE_H

#include "gswbench/format.h"
#include "launch.h"

struct magnitude_args {
    const void *in;           // [elements]
    float      *magnitude;    // [1]: raised to the amax
    int64_t     elements;
    enum format type;
};
KERNEL_FUNCTION int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target);

struct rescale_args {
    float  *magnitude;    // [slots]: amax of the step; reset to 0
    float  *history;      // [slots, history] or NULL: shifted by one, newest first
    float  *scale;        // [slots]: target / maximum of the history
    float  *factor;       // [slots]: 1 / scale
    int64_t slots, length;
    float   target;
};
KERNEL_FUNCTION int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target);

#endif
