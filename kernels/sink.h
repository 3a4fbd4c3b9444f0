// SPDX-License-Identifier: MIT
// Sinks of attention: the output and the log-sum-exp of a query over its keys take in one more score, which no value
// belongs to, and the gradient of that score. Bound by memory: the output read and written, or two arrays read.
#ifndef GSWBENCH_KERNELS_SINK_H
#define GSWBENCH_KERNELS_SINK_H

#include "launch.h"

struct sink_args {
    const void *sinks;         // [heads]
    void       *out;           // [batch, sequence, heads, head_dim]; forward: updated
    const void *gradient;      // backward: as out
    float      *statistics;    // [batch, heads, sequence]; forward: updated
    void       *to;            // backward: [heads]
    float      *scratch;       // backward: as many bytes as below
    int64_t     batch, sequence, heads, head_dim;
    bool        accumulates;
    enum format type, to_type;
};
KERNEL_FUNCTION int     kernel_sink_forward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int     kernel_sink_backward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_sink_backward_scratch_bytes(int64_t tokens, int64_t heads,
                                                           const struct kernel_target *target);

#endif
