// SPDX-License-Identifier: MIT
// Declares the kernels of RoPE, and kernels that split, join or transpose parts of rows.
#pragma once

#include "gswbench/op_shape.h"

#include "launch.h"

// Splits packed q, k, v, and rotates q and k by the angles of their position. Backward rotates back and packs.
// Memory-bound: in bf16, 4 bytes per element of the packed rows; the table is read once per token.
struct rope_args {
    const float *table;        // [sequence, rotary / 2, 2]: cosine, sine
    void        *packed;       // [tokens, heads + 2 kv_heads, head_dim]
    void        *query;        // [tokens, heads, head_dim]
    void        *key_value;    // [tokens, 2 kv_heads, head_dim]
    int64_t      tokens, sequence, heads, kv_heads, head_dim;
    int64_t      rotary;         // number of leading elements of a head that rotate; even
    bool         is_backward;    // packs query and key_value, rotated back
    enum format  type;
};
KERNEL_FUNCTION int kernel_rope(const struct rope_args *args, const struct kernel_target *target);

// Splits packed q, k, v, RMS-normalises each head of q and k, and rotates it. Backward does the reverse and computes
// the gradients of the norm weights. Memory-bound: in bf16, 4 bytes per element of the packed rows forward, 6 backward.
struct rope_norm_args {
    struct rope_args rope;
    const void      *scale;             // [2, head_dim]: norm weights of q and k
    const void      *in;                // backward: packed rows of the forward pass
    void            *scale_gradient;    // [2, head_dim], or NULL: frozen
    float           *scratch;           // size: kernel_rope_norm_scratch_bytes
    float            epsilon;
    bool             accumulates;    // adds to scale_gradient
    enum format      scale_gradient_type;
};
KERNEL_FUNCTION int kernel_rope_norm(const struct rope_norm_args *args, const struct kernel_target *target);

// Returns the scratch bytes that the backward pass of kernel_rope_norm needs.
KERNEL_FUNCTION int64_t kernel_rope_norm_scratch_bytes(const struct rope_args     *rope,
                                                       const struct kernel_target *target);

// RoPE of multi-head latent attention (MLA): builds the queries and keys for attention from the up-projections. The
// last `rotary` elements of each query head rotate. All heads share one rotated key part. Memory-bound: in bf16, 4
// bytes per element of queries, keys and values.
struct latent_rope_args {
    const float *table;           // [sequence, rotary / 2, 2]: cosine, sine
    void        *query_up;        // [tokens, heads, head_dim]
    void        *key_value_up;    // [tokens, heads, head_dim - rotary + value_dim]
    void        *shared_key;      // [tokens, rotary]
    void        *query;           // [tokens, heads, head_dim]
    void        *key_value;       // [tokens, heads head_dim + heads value_dim]
    int64_t      tokens, sequence, heads, head_dim, rotary, value_dim;
    bool         is_backward;    // reverses the copies and rotations; sums the gradient of shared_key over heads
    enum format  type;
};
KERNEL_FUNCTION int kernel_latent_rope(const struct latent_rope_args *args, const struct kernel_target *target);

// Splits the columns of a matrix in two, or joins them. Memory-bound: in bf16, 4 bytes per element.
struct split_args {
    void       *whole;           // [rows, columns]
    void       *first, *rest;    // [rows, first_columns], [rows, columns - first_columns]
    int64_t     rows, columns, first_columns;
    bool        joins;
    enum format type;
};
KERNEL_FUNCTION int kernel_split(const struct split_args *args, const struct kernel_target *target);

// Transposes [rows, parts, width] to [parts, rows, width], in the order of regroup_place. Memory-bound: in bf16, 4
// bytes per element.
struct regroup_args {
    const void       *in;     // [rows, parts, width]
    void             *out;    // [parts, rows, width]
    struct rows_shape shape;
    enum format       type;
};
KERNEL_FUNCTION int kernel_regroup(const struct regroup_args *args, const struct kernel_target *target);
