// SPDX-License-Identifier: MIT
// Cross entropy, whose gradient overwrites the logits, and softmax statistics for a sharded vocabulary. Memory-bound:
// in bf16, cross entropy moves 4 bytes per logit and the statistics 2. A thread block keeps its row in shared memory.
// If the row does not fit, its end is read again from the L2 cache.
#pragma once

#include <math.h>

#include "gswbench/arithmetic.h"
#include "launch.h"

enum { CROSS_ENTROPY_THREADS = 1024, LOGIT_STATISTICS_FLOATS = 3 };

struct logit_statistics_args {
    const void    *logits;     // [rows, columns]
    const int32_t *targets;    // [rows]
    float         *out;        // [rows, 3]: maximum, sum of exp(x - maximum), x[target] (0: in another shard)
    int64_t        rows, columns;
    int64_t        valid;         // columns from this one on are padding
    int64_t        first;         // vocabulary index of column 0
    float          multiplier;    // x = multiplier * logits
    enum format    type;
};
KERNEL_FUNCTION int kernel_logit_statistics(const struct logit_statistics_args *args,
                                            const struct kernel_target         *target);

struct cross_entropy_args {
    void          *logits;        // [rows, columns], replaced by scale * d loss / d logits
    const int32_t *targets;       // [rows]
    float         *losses;        // [rows]
    const float   *statistics;    // [parts, rows, 3]: statistics from every shard; NULL: not sharded
    int64_t        rows, columns, valid, first;
    int64_t        parts;
    float          scale, multiplier;    // the loss uses multiplier * logits
    enum format    type;
};
KERNEL_FUNCTION int kernel_cross_entropy(const struct cross_entropy_args *args, const struct kernel_target *target);

// Returns the bytes of a row that a block keeps in shared memory, in whole packets.
static inline int64_t cross_entropy_held_bytes(int64_t columns, enum format type, int32_t shared_bytes)
{
    const int64_t reserved = 2048;    // for the static arrays of block reductions
    int64_t       packet   = format_bytes(type, LAUNCH_WIDTH);
    return launch_minimum(launch_groups(columns, LAUNCH_WIDTH), (shared_bytes - reserved) / packet) * packet;
}

// State of an online softmax: the maximum so far and the sum of exp(x - maximum). The initial maximum is finite, so
// that the difference of the maxima of two empty states is 0, not NaN. Compiles as C and as CUDA.
struct softmax {
    float maximum, sum;
};
#define SOFTMAX_EMPTY ((struct softmax){-3.402823466e+38f, 0.0f})

// Adds values to the sum, after rescaling it to the new maximum.
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

// Returns the sum of exp(x - maximum) for another maximum, which must be at least softmax.maximum.
GSWBENCH_INLINE float softmax_sum_at(struct softmax softmax, float maximum)
{
    return softmax.sum * arithmetic_exp(softmax.maximum - maximum);
}
