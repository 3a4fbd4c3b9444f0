// SPDX-License-Identifier: MIT
// Attention in bf16 by mma.sync: for where cuDNN is missing or refuses a shape, and to check it. The backward pass adds
// in one order, without atomics: repeated runs give the same bits. Bound: the matrix instructions; forward 4, backward
// 14 operations per head element and pair of a query and a key that it sees (twice the scores, once for each side).
#ifndef GSWBENCH_KERNELS_ATTENTION_H
#define GSWBENCH_KERNELS_ATTENTION_H

#include "gswbench/format.h"
#include "launch.h"

// The largest width of a head that there is a kernel for: others are padded with zeros. Where keys and
// values differ, both are padded to this one.
enum { ATTENTION_HEAD_MAX = 256 };

// The shape of struct attention_shape; keys = earlier + sequence.
struct attention_kernel_shape {
    int64_t batch, sequence, keys, heads, kv_heads, head_dim, value_dim;
    float   scale;
    bool    is_causal;
    int64_t window;    // keys that a query sees at most, the last ones; 0: all
};
// Where scores fall with the distance of the key: heads of the whole model, or 0; of these the first that is here; and
// positions from the first key to the first query. Narrow, and behind the rest: with arguments of more than 128 bytes
// nvcc spills registers of the forward pass.
struct attention_kernel_slopes {
    int32_t heads, first_head, distance;
};

struct attention_forward_args {
    struct attention_kernel_shape  shape;
    const void                    *query, *key_value;    // bf16
    void                          *out;
    float                         *statistics;
    enum format                    out_type;    // bf16, or f32: a part that is joined with others
    struct attention_kernel_slopes slopes;
};

struct attention_backward_args {
    struct attention_kernel_shape  shape;
    const void                    *out_gradient, *query, *key_value, *out;    // bf16
    const float                   *statistics;
    void                          *query_gradient, *key_value_gradient;
    float                         *row_sums;    // [batch, heads, sequence]: scratch
    bool                           adds_query, adds_key_value;
    enum format                    query_gradient_type, key_value_gradient_type;    // bf16, or f32: sums of several
    struct attention_kernel_slopes slopes;
};

KERNEL_FUNCTION int kernel_attention_forward(const struct attention_forward_args *args,
                                             const struct kernel_target          *target);
KERNEL_FUNCTION int kernel_attention_backward(const struct attention_backward_args *args,
                                              const struct kernel_target           *target);

// Of a block, at most, in that pass.
KERNEL_FUNCTION int kernel_attention_shared_bytes(int64_t head_dim, int64_t value_dim, bool is_backward);

#endif
