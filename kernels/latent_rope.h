// SPDX-License-Identifier: MIT
// Rope of latent attention: queries and keys as attention reads them, of heads whose last elements rotate, those of
// keys once for all heads. Bound by memory: with bf16, 4 bytes an element of queries, keys and values.
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
    bool         is_backward;    // from query and key_value into the others, rotated back; the shared key sums up
    enum format  type;
};
KERNEL_FUNCTION int kernel_latent_rope(const struct latent_rope_args *args, const struct kernel_target *target);

#endif
