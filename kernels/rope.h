// SPDX-License-Identifier: MIT
// Splits packed q, k, v and rotates q and k by position; backward does the reverse. Memory-bound: in bf16, 4 bytes per
// element of the packed rows; the table is read once per token.
#ifndef GSWBENCH_KERNELS_ROPE_H
#define GSWBENCH_KERNELS_ROPE_H

#include "gswbench/format.h"
#include "launch.h"

struct rope_args {
    const float *table;        // [sequence, rotary / 2, 2]: cosine, sine
    void        *packed;       // [tokens, heads + 2 kv_heads, head_dim]
    void        *query;        // [tokens, heads, head_dim]
    void        *key_value;    // [tokens, 2 kv_heads, head_dim]
    int64_t      tokens, sequence, heads, kv_heads, head_dim;
    int64_t      rotary;         // leading elements of a head that rotate, even
    bool         is_backward;    // packs query and key_value, rotated back
    enum format  type;
};
KERNEL_FUNCTION int kernel_rope(const struct rope_args *args, const struct kernel_target *target);

#endif
