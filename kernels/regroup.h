// SPDX-License-Identifier: MIT
// Transposes rows and parts: [rows, parts, width] to [parts, rows, width]. Memory-bound: in bf16, 4 bytes per element.
#ifndef GSWBENCH_KERNELS_REGROUP_H
#define GSWBENCH_KERNELS_REGROUP_H

#include "gswbench/format.h"
#include "launch.h"

struct regroup_args {
    const void *in;     // [rows, parts, width]
    void       *out;    // [parts, rows, width]
    int64_t     rows, parts, width;
    bool        folds_parts, folds_rows;    // reverse the rows of odd parts; reverse the parts of odd rows
    enum format type;
};
KERNEL_FUNCTION int kernel_regroup(const struct regroup_args *args, const struct kernel_target *target);

#endif
