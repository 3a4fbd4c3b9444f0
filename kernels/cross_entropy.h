// SPDX-License-Identifier: MIT
// Cross entropy of logits that become their gradient in place; with a sharded vocabulary, what others need of
// them. Bound by memory: 4 bytes a logit in bf16, for which a block holds its row in shared memory, and where that is
// too small finds the rest in the second-level cache; 2 for the statistics.
#ifndef GSWBENCH_KERNELS_CROSS_ENTROPY_H
#define GSWBENCH_KERNELS_CROSS_ENTROPY_H

#include "gswbench/format.h"
#include "launch.h"

enum { CROSS_ENTROPY_THREADS = 1024, LOGIT_STATISTICS_FLOATS = 3 };

struct logit_statistics_args {
    const void    *logits;     // [rows, columns]
    const int32_t *targets;    // [rows]
    float         *out;        // [rows, 3]: largest logit, sum of exp(logit - largest), the target's logit or 0, of
                               // logits times the multiplier
    int64_t     rows, columns;
    int64_t     valid;    // columns beyond are padding
    int64_t     first;    // column 0 is this entry of the vocabulary
    float       multiplier;
    enum format type;
};
KERNEL_FUNCTION int kernel_logit_statistics(const struct logit_statistics_args *args,
                                            const struct kernel_target         *target);

struct cross_entropy_args {
    void          *logits;        // [rows, columns], replaced by scale * d loss / d logits
    const int32_t *targets;       // [rows]
    float         *losses;        // [rows]
    const float   *statistics;    // [parts, rows, 3]: as above, of all parts; absent: all of the vocabulary is here
    int64_t        rows, columns, valid, first;
    int64_t        parts;
    float          scale, multiplier;    // the loss is of logits times the latter
    enum format    type;
};
KERNEL_FUNCTION int kernel_cross_entropy(const struct cross_entropy_args *args, const struct kernel_target *target);

// Bytes of a row that a block holds in shared memory: whole packets.
static inline int64_t cross_entropy_held_bytes(int64_t columns, enum format type, int32_t shared_bytes)
{
    const int64_t reserved = 2048;    // for the sums over the block
    int64_t       packet   = format_bytes(type, LAUNCH_WIDTH);
    return launch_minimum(launch_groups(columns, LAUNCH_WIDTH), (shared_bytes - reserved) / packet) * packet;
}

#endif
