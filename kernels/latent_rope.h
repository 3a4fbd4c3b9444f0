// SPDX-License-Identifier: MIT
// RoPE of multi-head latent attention: builds queries and keys for attention. The last elements of each query head
// rotate; one rotated key part is shared by all heads. Memory-bound: in bf16, 4 bytes per element of queries, keys and
// values.
#ifndef GSWBENCH_KERNELS_LATENT_ROPE_H
#define GSWBENCH_KERNELS_LATENT_ROPE_H

#include "gswbench/format.h"
#include "launch.h"

struct latent_rope_args {
    const float *table;           // [sequence, rotary / 2, 2]: cosine, sine
    void        *query_up;        // [tokens, heads, head_dim]
    void        *key_value_up;    // [tokens, heads, head_dim - rotary + value_dim]
    void        *shared_key;      // [tokens, rotary]
    void        *query;           // [tokens, heads, head_dim]
    void        *key_value;       // [tokens, heads head_dim + heads value_dim]
    int64_t      tokens, sequence, heads, head_dim, rotary, value_dim;
    bool         is_backward;    // reverses the copies and rotations; sums shared_key over heads
    enum format  type;
};
KERNEL_FUNCTION int kernel_latent_rope(const struct latent_rope_args *args, const struct kernel_target *target);

#endif
