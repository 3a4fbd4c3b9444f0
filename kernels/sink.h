// SPDX-License-Identifier: MIT
// Attention sinks: an extra score per head in the softmax denominator, without a value, and its gradient. Memory-bound:
// forward reads and writes the output, backward reads two arrays.
#ifndef GSWBENCH_KERNELS_SINK_H
#define GSWBENCH_KERNELS_SINK_H

#include "launch.h"

struct sink_args {
    const void *sinks;         // [heads]
    void       *out;           // [batch, sequence, heads, head_dim]; forward: updated
    const void *gradient;      // backward: like out
    float      *statistics;    // [batch, heads, sequence]; forward: updated
    void       *to;            // backward: [heads]
    float      *scratch;       // backward: kernel_sink_backward_scratch_bytes
    int64_t     batch, sequence, heads, head_dim;
    bool        accumulates;
    enum format type, to_type;
};
KERNEL_FUNCTION int     kernel_sink_forward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int     kernel_sink_backward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_sink_backward_scratch_bytes(int64_t tokens, int64_t heads,
                                                           const struct kernel_target *target);

#endif
