// SPDX-License-Identifier: MIT
// Iteration of key_kernel (attention backward) over the query tiles that see a block of keys.
#ifndef GSWBENCH_KERNELS_ATTENTION_WALK_CUH
#define GSWBENCH_KERNELS_ATTENTION_WALK_CUH

#include "attention_tile.cuh"

namespace
{
constexpr int key_threads = 2 * THREADS;

// Position in the query tiles of all heads that share these keys.
struct walk {
    int64_t head, first;    // current tile
    int64_t from, heads;    // first query of each head; heads left
};

template <int padded>
__device__ inline void copy_queries(bf16 *stage, float *rows, const struct attention_backward_args &args,
                                    const walk &at_tile)
{
    constexpr int                 queries = tile<padded>::queries;
    const attention_kernel_shape &shape   = args.shape;
    place                         at      = place_of<padded>(shape, blockIdx.z, at_tile.head);
    int64_t here = at.query + at_tile.first * at.query_stride, left = shape.sequence - at_tile.first;
    copy_tile<padded, queries, key_threads>(stage, (const bf16 *)args.query + here, at.query_stride, left, at.head_dim);
    copy_tile<padded, queries, key_threads>(stage + queries * tile<padded>::pitch,
                                            (const bf16 *)args.out_gradient + at.out + at_tile.first * at.out_stride,
                                            at.out_stride, left, at.value_dim);
    for (int i = threadIdx.x; i < queries; i += key_threads) {
        rows[i]           = i < left ? args.statistics[at.statistics + at_tile.first + i] * LOG2_E : INFINITY;
        rows[queries + i] = i < left ? args.row_sums[at.statistics + at_tile.first + i] : 0.0f;
    }
}

// Moves to the next tile; false after the last head.
__device__ inline bool advance(walk &at, int64_t queries, int64_t sequence)
{
    at.first += queries;
    if (at.first >= sequence) {
        at.first = at.from;
        at.head++;
        at.heads--;
    }
    return at.heads > 0;
}

// End of the queries that see a key before `key`; at least begin + 1.
template <bool has_window>
__device__ inline int64_t last_reader(const attention_kernel_shape &shape, int64_t key, int64_t begin)
{
    int64_t end = has_window ? key - 1 + shape.window - (shape.keys - shape.sequence) : shape.sequence;
    return end > begin ? launch_minimum(end, shape.sequence) : begin + 1;
}

// Stores a warp's half of the queries for both warps that share the keys.
template <int sides, int columns, int pitch>
__device__ inline void share(bf16 *to, const uint32_t (&rounded)[sides][columns][2])
{
#pragma unroll
    for (int i = 0; i < 2 * sides; i++) {
        bf16 *row = to + (i * 8 + matrix_row()) * pitch + matrix_column();
#pragma unroll
        for (int column = 0; column < columns; column++) {
            *reinterpret_cast<uint32_t *>(row + column * 8) = rounded[i / 2][column][i % 2];
        }
    }
}
}    // namespace

#endif
