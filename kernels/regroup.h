// SPDX-License-Identifier: MIT
// Rows and their parts change places. Bound by memory: with bf16, 4 bytes an element.
#ifndef GSWBENCH_KERNELS_REGROUP_H
#define GSWBENCH_KERNELS_REGROUP_H

#include "gswbench/format.h"
#include "launch.h"

struct regroup_args {
    const void *in;     // [rows, parts, width]
    void       *out;    // [parts, rows, width]
    int64_t     rows, parts, width;
    bool        folds_parts, folds_rows;    // of odd parts the rows come in reverse; of odd rows the parts
    enum format type;
};
KERNEL_FUNCTION int kernel_regroup(const struct regroup_args *args, const struct kernel_target *target);

#endif
