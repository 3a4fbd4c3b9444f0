// SPDX-License-Identifier: MIT
// Computes RoPE (rotary position embedding). Elements a = x[i] and b = x[i + rotary / 2] of a head rotate by the angle
// of the position:
//
//   a' = a cos - b sin, b' = b cos + a sin
//
// Backward reverses the sign of sin. One thread block handles one token. A thread handles eight pairs (a, b) at a time,
// or eight elements that do not rotate.
#include "rope.h"
#include "rope_turn.cuh"

namespace
{
template <typename T, bool is_wide, bool is_backward>
__global__ void __launch_bounds__(LAUNCH_THREADS) rope_kernel(const struct rope_args args)
{
    int heads = (int)args.heads, rotated = (int)(args.heads + args.kv_heads), all = (int)(rotated + args.kv_heads);
    int half = (int)args.rotary / 2, rest = (int)args.head_dim - 2 * half, width_of_head = (int)args.head_dim;
    int pairs = (int)launch_groups(half, width), items = pairs + (int)launch_groups(rest, width);
    for (int64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
        T           *packed = (T *)args.packed + token * all * args.head_dim;
        T           *query  = (T *)args.query + token * heads * args.head_dim;
        T           *others = (T *)args.key_value + token * (all - heads) * args.head_dim;
        const float *angles = args.table + token % args.sequence * 2 * half;
        for (int i = threadIdx.x; i < all * items; i += blockDim.x) {
            int      head = i / items, item = i % items;
            bool     is_pair = item < pairs;
            int      at      = is_pair ? item * width : 2 * half + (item - pairs) * width;
            int      count   = packet_elements<is_wide>(at, is_pair ? half : width_of_head);
            T       *one     = packed + head * width_of_head + at;
            T       *two = (head < heads ? query + head * width_of_head : others + (head - heads) * width_of_head) + at;
            const T *from = is_backward ? two : one;
            T       *to   = is_backward ? one : two;
            if (is_pair && head < rotated) {
                rotate<T, is_wide>(to, from, half, angles + 2 * at, is_backward ? -1.0f : 1.0f, count);
            } else {
                copy<T, is_wide>(to, from, count);
                if (is_pair) {
                    copy<T, is_wide>(to + half, from + half, count);
                }
            }
        }
    }
}
}    // namespace

int kernel_rope(const struct rope_args *args, const struct kernel_target *target)
{
    int64_t       half  = args->rotary / 2;
    int64_t       items = launch_groups(half, width) + launch_groups(args->head_dim - 2 * half, width);
    struct launch launch =
        launch_rows(args->tokens, (args->heads + 2 * args->kv_heads) * items, LAUNCH_THREADS, target->multiprocessors);
    bool is_wide = launch_is_wide(half, addresses(args->table, args->packed, args->query, args->key_value)) &&
                   launch_is_wide(args->head_dim, 0);
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return with_flag(args->is_backward, [&](auto backward) {
            return enqueue(rope_kernel<decltype(type), wide.value, backward.value>, launch, 0, target, *args);
        });
    });
}
