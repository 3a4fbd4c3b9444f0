// SPDX-License-Identifier: MIT
// Computes BF16 attention with mma.sync, for shapes that cuDNN does not support, and as a reference for cuDNN. The
// backward pass sums in a fixed order and uses no atomics, so results are reproducible. Bound by tensor cores: 4 FLOPs
// forward and 14 backward per visible (query, key) pair and element of a head. Backward needs 14 instead of 10, because
// both of its kernels compute the scores and dO V^T.
#pragma once

#include "launch.h"

// Maximum head dimension. Heads are zero-padded to 64, 128 or 256 elements. If keys and values have different
// dimensions, both are padded to 256.
enum { ATTENTION_HEAD_MAX = 256 };

// Shape of one attention call. Queries are the last `sequence` of the `keys` positions.
struct attention_kernel_shape {
    int64_t batch, sequence, keys, heads, kv_heads, head_dim, value_dim;
    float   scale;
    bool    is_causal;
    int64_t window;    // maximum number of most recent keys that a query sees; 0: all
};
// ALiBi bias. heads: number of heads of the whole model, 0 without ALiBi. first_head: index of the first local head.
// distance: positions from the first key to the first query. The fields are 32-bit and last in the arguments, because
// nvcc spills registers in the forward kernel if its arguments exceed 128 bytes.
struct attention_kernel_slopes {
    int32_t heads, first_head, distance;
};

struct attention_forward_args {
    struct attention_kernel_shape  shape;
    const void                    *query, *key_value;    // bf16; layouts: ATTENTION_FORWARD in op_operands.h
    void                          *out;
    float                         *statistics;
    enum format                    out_type;    // bf16; f32 if kernel_attention_merge combines out with other parts
    struct attention_kernel_slopes slopes;
};

struct attention_backward_args {
    struct attention_kernel_shape  shape;
    const void                    *out_gradient, *query, *key_value, *out;    // bf16; layouts: op_operands.h
    const float                   *statistics;
    void                          *query_gradient, *key_value_gradient;
    float                         *row_sums;    // [batch, heads, sequence]: scratch, row sums of dO * O
    bool                           adds_query, adds_key_value;
    enum format                    query_gradient_type, key_value_gradient_type;    // bf16, or f32 to accumulate
    struct attention_kernel_slopes slopes;
};

KERNEL_FUNCTION int kernel_attention_forward(const struct attention_forward_args *args,
                                             const struct kernel_target          *target);
KERNEL_FUNCTION int kernel_attention_backward(const struct attention_backward_args *args,
                                              const struct kernel_target           *target);

// Returns the shared memory that one thread block needs in the forward or backward pass. A device with less cannot run
// the pass.
KERNEL_FUNCTION int kernel_attention_shared_bytes(int64_t head_dim, int64_t value_dim, bool is_backward);

// Combines two attention results of the same queries over different keys. Their log-sum-exp values (statistics) weight
// them. Computes in fp32. Memory-bound: 12 bytes per element.
struct attention_merge_args {
    float       *out;                // [batch, sequence, heads, head_dim], updated
    float       *statistics;         // [batch, heads, sequence]: log-sum-exp, updated
    const float *part;               // result over the other keys, same shape as out
    const float *part_statistics;    // log-sum-exp of part, same shape as statistics
    int64_t      batch, sequence, heads, head_dim;
};
KERNEL_FUNCTION int kernel_attention_merge(const struct attention_merge_args *args, const struct kernel_target *target);

// Attention sinks: each head has a learned score that joins its softmax like the score of a key without a value vector.
// Memory-bound: forward reads and writes the attention output; backward reads the output and its gradient.
struct sink_args {
    const void *sinks;         // [heads]
    void       *out;           // [batch, sequence, heads, head_dim]; forward: updated
    const void *gradient;      // backward: gradient of out, same shape
    float      *statistics;    // [batch, heads, sequence]: log-sum-exp; forward: updated
    void       *to;            // backward: [heads], gradient of the sinks
    float      *scratch;       // backward; size: kernel_sink_backward_scratch_bytes
    int64_t     batch, sequence, heads, head_dim;
    bool        accumulates;
    enum format type, to_type;
};
KERNEL_FUNCTION int     kernel_sink_forward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int     kernel_sink_backward(const struct sink_args *args, const struct kernel_target *target);
KERNEL_FUNCTION int64_t kernel_sink_backward_scratch_bytes(int64_t tokens, int64_t heads,
                                                           const struct kernel_target *target);
