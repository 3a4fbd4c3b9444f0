// SPDX-License-Identifier: MIT
// Combines two attention results of the same queries over different keys by their log-sum-exp, in fp32. Memory-bound:
// 12 bytes per element.
#ifndef GSWBENCH_KERNELS_ATTENTION_MERGE_H
#define GSWBENCH_KERNELS_ATTENTION_MERGE_H

#include "launch.h"

struct attention_merge_args {
    float       *out;                // [batch, sequence, heads, head_dim], updated
    float       *statistics;         // [batch, heads, sequence], updated
    const float *part;               // like out
    const float *part_statistics;    // like statistics
    int64_t      batch, sequence, heads, head_dim;
};
KERNEL_FUNCTION int kernel_attention_merge(const struct attention_merge_args *args, const struct kernel_target *target);

#endif
