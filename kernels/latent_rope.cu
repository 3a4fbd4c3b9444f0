// SPDX-License-Identifier: MIT
// Computes RoPE of multi-head latent attention (MLA). rope.cu has the formula. One thread block handles one token, and
// each thread handles packets of eight elements of the heads. All heads share one rotary key, so backward sums its
// gradient over heads. The threads that hold the same packet of the key divide the heads among each other, and then
// their sums are added in order.
#include "rope.h"
#include "rope_turn.cuh"

namespace
{
constexpr int BANK_GAP = 4;    // padding of a row of sums against bank conflicts, for the usual rotary size of 64

// Sizes of the parts of a head, in elements: half of the rotary part, the part that does not rotate, and the value.
// of_half, of_plain and of_value: number of packets of eight elements in each part.
struct layout {
    int half, plain, value, of_plain, of_half, of_value;
};

__host__ __device__ inline layout layout_of(const latent_rope_args &args)
{
    layout its   = {};
    its.half     = (int)args.rotary / 2;
    its.plain    = (int)(args.head_dim - args.rotary);
    its.value    = (int)args.value_dim;
    its.of_plain = (int)launch_groups(its.plain, width);
    its.of_half  = (int)launch_groups(its.half, width);
    its.of_value = (int)launch_groups(its.value, width);
    return its;
}

// Copies a packet from `up` (the output of the up-projection) to `out` (the input of attention). Backward copies from
// `out` to `up`.
template <typename T, bool is_wide, bool is_backward> __device__ inline void move(T *up, T *out, int at, int total)
{
    int count = packet_elements<is_wide>(at, total);
    copy<T, is_wide>((is_backward ? up : out) + at, (is_backward ? out : up) + at, count);
}

// Sums the gradient of the shared rotary key over heads, and rotates it back.
template <typename T, bool is_wide>
__device__ inline void sum_heads(T *shared_key, const T *keys, const latent_rope_args &args, const layout &its,
                                 const float *angles)
{
    __shared__ float sums[2 * width][LAUNCH_THREADS + BANK_GAP];
    for (int base = 0; base < its.of_half; base += (int)blockDim.x) {
        int   items  = min(its.of_half - base, (int)blockDim.x);
        int   slices = min((int)blockDim.x / items, (int)args.heads);
        int   slice = (int)threadIdx.x / items, at = (base + (int)threadIdx.x % items) * width;
        int   count        = packet_elements<is_wide>(at, its.half);
        float first[width] = {}, second[width] = {};
        for (int head = slice; slice < slices && head < args.heads; head += slices) {
            const T *from = keys + head * args.head_dim + its.plain + at;
            float    one[width], other[width];
            load<is_wide>(one, from, count);
            load<is_wide>(other, from + its.half, count);
            each([&](int i) {
                first[i] += one[i];
                second[i] += other[i];
            });
        }
        each([&](int i) {
            sums[i][threadIdx.x]         = first[i];
            sums[width + i][threadIdx.x] = second[i];
        });
        __syncthreads();
        for (int i = threadIdx.x; i < items * 2 * width; i += (int)blockDim.x) {    // one element per thread
            float *of = &sums[i / items][i % items], sum = *of;
            for (int other = 1; other < slices; other++) {
                sum += of[other * items];
            }
            *of = sum;
        }
        __syncthreads();
        if (slice == 0) {
            each([&](int i) {
                first[i]  = sums[i][threadIdx.x];
                second[i] = sums[width + i][threadIdx.x];
            });
            turn<is_wide>(first, second, angles + 2 * at, -1.0f, count);
            store<is_wide>(shared_key + at, first, count);
            store<is_wide>(shared_key + its.half + at, second, count);
        }
        __syncthreads();
    }
}

template <typename T, bool is_wide, bool is_backward>
__global__ void __launch_bounds__(LAUNCH_THREADS) latent_rope_kernel(const struct latent_rope_args args)
{
    layout its   = layout_of(args);
    int    heads = (int)args.heads, head_dim = (int)args.head_dim;
    int    items = 2 * its.of_plain + 2 * its.of_half + its.of_value;
    for (int64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
        const float *angles   = args.table + token % args.sequence * args.rotary;
        T           *query_up = (T *)args.query_up + token * heads * head_dim;
        T           *pair_up  = (T *)args.key_value_up + token * heads * (its.plain + its.value);
        T           *query    = (T *)args.query + token * heads * head_dim;
        T           *keys     = (T *)args.key_value + token * heads * (head_dim + its.value);
        T           *shared   = (T *)args.shared_key + token * args.rotary;
        for (int i = threadIdx.x; i < heads * items; i += blockDim.x) {
            int head = i / items, item = i % items;
            T  *q_up = query_up + head * head_dim, *q = query + head * head_dim, *key = keys + head * head_dim;
            T  *up = pair_up + head * (its.plain + its.value);
            if (item < its.of_plain) {
                move<T, is_wide, is_backward>(q_up, q, item * width, its.plain);
            } else if ((item -= its.of_plain) < its.of_plain) {
                move<T, is_wide, is_backward>(up, key, item * width, its.plain);
            } else if ((item -= its.of_plain) < its.of_value) {
                T *value = keys + heads * head_dim + head * its.value;
                move<T, is_wide, is_backward>(up + its.plain, value, item * width, its.value);
            } else if ((item -= its.of_value) < its.of_half) {
                int at = item * width, count = packet_elements<is_wide>(at, its.half);
                T  *one = q_up + its.plain + at, *other = q + its.plain + at;
                rotate<T, is_wide>(is_backward ? one : other, is_backward ? other : one, its.half, angles + 2 * at,
                                   is_backward ? -1.0f : 1.0f, count);
            } else if (!is_backward) {
                int at = (item - its.of_half) * width, count = packet_elements<is_wide>(at, its.half);
                rotate<T, is_wide>(key + its.plain + at, shared + at, its.half, angles + 2 * at, 1.0f, count);
            }
        }
        if (is_backward) {
            sum_heads<T, is_wide>(shared, keys, args, its, angles);
        }
    }
}
}    // namespace

int kernel_latent_rope(const struct latent_rope_args *args, const struct kernel_target *target)
{
    layout        its    = layout_of(*args);
    int64_t       items  = args->heads * (2 * its.of_plain + 2 * its.of_half + its.of_value);
    struct launch launch = launch_rows(args->tokens, items, LAUNCH_THREADS, target->multiprocessors);
    uintptr_t     all =
        addresses(args->table, args->query_up, args->key_value_up, args->shared_key, args->query, args->key_value);
    bool is_wide = launch_is_wide(its.half, all) && launch_is_wide(its.plain, 0) && launch_is_wide(its.value, 0);
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return with_flag(args->is_backward, [&](auto backward) {
            return enqueue(latent_rope_kernel<decltype(type), wide.value, backward.value>, launch, 0, target, *args);
        });
    });
}
