// SPDX-License-Identifier: MIT
// Computes the RMS norm of each head of q and k, then RoPE (formulas: norm.cu, norm_backward.cu, rope.cu). A group of 1
// to 32 lanes, a power of two, holds one head in registers. RoPE rotates elements i and i + rotary / 2 of a head
// together, so a lane holds pairs of packets (eight elements each) at this distance, or single packets that do not
// rotate. The gradient of the norm weights is summed in two stages: each block sums over its heads; then the partial
// sums are added in order.
#include "gswbench/arithmetic.h"

#include "rope.h"
#include "sum_parts.cuh"

namespace
{
constexpr int HELD = 5;    // items (see struct layout) per lane, if a warp holds the widest head of 1,024 elements

enum kind { QUERIES, KEYS, VALUES, KINDS };

// How a head is divided among lanes. An item is a pair of packets that rotates, or a single packet that does not. The
// first `pairs` of the `items` are pairs.
struct layout {
    int half, head_dim, pairs, items;
    int lanes;    // lanes per head, a power of two
};

__host__ __device__ inline layout layout_of(const struct rope_args &args)
{
    layout its   = {};
    its.half     = (int)args.rotary / 2;
    its.head_dim = (int)args.head_dim;
    its.pairs    = (int)launch_groups(its.half, width);
    its.items    = its.pairs + (int)launch_groups(its.head_dim - 2 * its.half, width);
    its.lanes    = 1;
    while (its.lanes < its.items && its.lanes < LAUNCH_WARP) {
        its.lanes *= 2;
    }
    return its;
}

// Position of an item (struct layout) in its head. at: first element. count: elements per packet. is_here: it exists.
struct place {
    int  at, count;
    bool is_here, is_pair;
};

template <bool is_wide> __device__ inline place place_of(int i, const layout &its)
{
    int  item    = (int)threadIdx.x % its.lanes + i * its.lanes;
    bool is_pair = item < its.pairs;
    int  at      = is_pair ? item * width : 2 * its.half + (item - its.pairs) * width;
    return {at, packet_elements<is_wide>(at, is_pair ? its.half : its.head_dim), item < its.items, is_pair};
}

// The items of a head (struct layout) that one lane holds, in fp32: [item][packet of the item][element]. Missing items
// are zero, and so is the second packet of an item that is not a pair.
template <int held> struct piece {
    float of[held][2][width];
};

template <int held, bool is_wide, typename T>
__device__ inline void read(piece<held> &piece, const T *head, const layout &its)
{
    packet<T> raw[held][2] = {};
#pragma unroll
    for (int i = 0; i < held; i++) {
        place here = place_of<is_wide>(i, its);
        if (here.is_here) {
            raw[i][0] = fetch<is_wide>(head + here.at, here.count);
        }
        if (here.is_here && here.is_pair) {
            raw[i][1] = fetch<is_wide>(head + here.at + its.half, here.count);
        }
    }
#pragma unroll
    for (int i = 0; i < held; i++) {
        unpack(piece.of[i][0], raw[i][0]);
        unpack(piece.of[i][1], raw[i][1]);
    }
}

template <int held, bool is_wide, typename T>
__device__ inline void write(T *head, const piece<held> &piece, const layout &its)
{
#pragma unroll
    for (int i = 0; i < held; i++) {
        place here = place_of<is_wide>(i, its);
        if (here.is_here) {
            store<is_wide>(head + here.at, piece.of[i][0], here.count);
        }
        if (here.is_here && here.is_pair) {
            store<is_wide>(head + here.at + its.half, piece.of[i][1], here.count);
        }
    }
}

// Rotates a lane's packet pairs. direction: 1, or -1 to rotate back. angles: interleaved cosines and sines of the
// position.
template <int held, bool is_wide>
__device__ inline void rotate(piece<held> &piece, const float *angles, float direction, const layout &its)
{
#pragma unroll
    for (int i = 0; i < held; i++) {
        place here = place_of<is_wide>(i, its);
        if (here.is_here && here.is_pair) {
            float angle[2][width];
            load<is_wide>(angle[0], angles + 2 * here.at, is_wide ? width : min(width, 2 * here.count));
            load<is_wide>(angle[1], angles + 2 * here.at + width, is_wide ? width : max(0, 2 * here.count - width));
#pragma unroll
            for (int j = 0; j < width; j++) {
                const float *pair = &angle[2 * j / width][2 * j % width];
                arithmetic_rotate(&piece.of[i][0][j], &piece.of[i][1][j], pair[0], direction * pair[1]);
            }
        }
    }
}

// Returns the dot product of two heads on each lane that holds them. All threads of a warp must call it.
template <int held>
__device__ inline float head_sum(const piece<held> &one, const piece<held> &other, const layout &its)
{
    float sum = 0;
    each<held * 2 * width>([&](int i) { sum += (&one.of[0][0][0])[i] * (&other.of[0][0][0])[i]; });
    for (int distance = its.lanes / 2; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    return sum;
}

// Divides x by its RMS, and returns 1 / rms.
template <int held> __device__ inline float normalise(piece<held> &x, const layout &its, float epsilon)
{
    float inverse = 1.0f / sqrtf(head_sum(x, x, its) / (float)its.head_dim + epsilon);
    each<held * 2 * width>([&](int i) { (&x.of[0][0][0])[i] *= inverse; });
    return inverse;
}

template <int held> __device__ inline void multiply(piece<held> &x, const piece<held> &by)
{
    each<held * 2 * width>([&](int i) { (&x.of[0][0][0])[i] *= (&by.of[0][0][0])[i]; });
}

// Describes every head of one kind (queries, keys or values) in every token, as one sequence of `total` heads.
// packed_at and split_at return the index of head i in the packed rows and in the split arrays.
template <typename T> struct heads {
    T       *packed, *split;
    const T *in;
    int64_t  packed_heads, split_heads, first, split_first, count, total;

    __device__ heads(const struct rope_norm_args &args, int kind)
    {
        const struct rope_args &rope = args.rope;
        packed                       = (T *)rope.packed;
        in                           = (const T *)args.in;
        split                        = (T *)(kind == QUERIES ? rope.query : rope.key_value);
        packed_heads                 = rope.heads + 2 * rope.kv_heads;
        split_heads                  = kind == QUERIES ? rope.heads : 2 * rope.kv_heads;
        first                        = kind == QUERIES ? 0 : rope.heads + (kind == VALUES ? rope.kv_heads : 0);
        split_first                  = kind == VALUES ? rope.kv_heads : 0;
        count                        = kind == QUERIES ? rope.heads : rope.kv_heads;
        total                        = rope.tokens * count;
    }
    __device__ int64_t packed_at(int64_t i) const
    {
        return i / count * packed_heads + first + i % count;
    }
    __device__ int64_t split_at(int64_t i) const
    {
        return i / count * split_heads + split_first + i % count;
    }
};

// Replaces the gradient of the norm's output by the gradient of its input x, and adds to the gradient of the norm
// weights in sums.
template <int held>
__device__ inline void norm_gradient(piece<held> &gradient, piece<held> &x, piece<held> &sums, const piece<held> &scale,
                                     const layout &its, float epsilon)
{
    float inverse = normalise(x, its, epsilon);
    each<held * 2 * width>([&](int i) { (&sums.of[0][0][0])[i] += (&gradient.of[0][0][0])[i] * (&x.of[0][0][0])[i]; });
    multiply(gradient, scale);
    float along = head_sum(gradient, x, its) / (float)its.head_dim;
#pragma unroll
    for (int i = 0; i < held * 2 * width; i++) {
        (&gradient.of[0][0][0])[i] = inverse * ((&gradient.of[0][0][0])[i] - (&x.of[0][0][0])[i] * along);
    }
}

// Sums the weight gradients over the block's groups of lanes, and writes the sums to `to` [head_dim].
template <int held> __device__ inline void add_block(float *to, const piece<held> &sums, const layout &its)
{
    float *space  = dynamic_shared<float>();
    int    groups = (int)blockDim.x / its.lanes;
    write<held, false>(space + threadIdx.x / its.lanes * its.head_dim, sums, its);
    __syncthreads();
    for (int column = threadIdx.x; column < its.head_dim; column += blockDim.x) {
        float sum = 0;
        for (int group = 0; group < groups; group++) {
            sum += space[group * its.head_dim + column];
        }
        to[column] = sum;
    }
    __syncthreads();    // the next kind of heads reuses the shared memory
}

template <typename T, int held, bool is_wide, bool is_backward>
__global__ void __launch_bounds__(LAUNCH_THREADS) rope_norm_kernel(const struct rope_norm_args args)
{
    layout  its    = layout_of(args.rope);
    int     groups = LAUNCH_WARP / its.lanes, lane = threadIdx.x % LAUNCH_WARP;
    int64_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / LAUNCH_WARP, warps = gridDim.x * blockDim.x / LAUNCH_WARP;
    for (int kind = QUERIES; kind < KINDS; kind++) {
        heads<T>    all(args, kind);
        piece<held> scale = {}, sums = {};
        if (kind != VALUES) {
            read<held, is_wide>(scale, (const T *)args.scale + kind * its.head_dim, its);
        }
        // All lanes of a warp run the same number of iterations, even without a head, because they reduce with
        // shuffles.
        for (int64_t first = warp * groups; first < all.total; first += warps * groups) {
            int64_t i           = first + lane / its.lanes;
            bool    is_here     = i < all.total;
            T      *packed      = all.packed + all.packed_at(i) * its.head_dim,
              *split            = all.split + all.split_at(i) * its.head_dim;
            const float *angles = args.rope.table + i / all.count % args.rope.sequence * 2 * its.half;
            piece<held>  x = {}, gradient = {};
            if (is_here) {
                read<held, is_wide>(is_backward ? gradient : x, (const T *)(is_backward ? split : packed), its);
            }
            if (kind != VALUES && is_backward) {
                if (is_here) {
                    rotate<held, is_wide>(gradient, angles, -1.0f, its);
                    read<held, is_wide>(x, all.in + all.packed_at(i) * its.head_dim, its);
                }
                norm_gradient(gradient, x, sums, scale, its, args.epsilon);
            } else if (kind != VALUES) {
                normalise(x, its, args.epsilon);
                multiply(x, scale);
                if (is_here) {
                    rotate<held, is_wide>(x, angles, 1.0f, its);
                }
            }
            if (is_here) {
                write<held, is_wide>(is_backward ? packed : split, is_backward ? gradient : x, its);
            }
        }
        if (is_backward && kind != VALUES) {
            add_block(args.scratch + (blockIdx.x * 2 + kind) * its.head_dim, sums, its);
        }
    }
}

// Returns a launch with one group of lanes for each query head, within the limit of launch_blocks.
struct launch rope_norm_launch(const struct rope_args &args, const struct kernel_target *target)
{
    int64_t heads = LAUNCH_THREADS / layout_of(args).lanes;
    return {launch_blocks(launch_groups(args.tokens * args.heads, heads), LAUNCH_THREADS, target->multiprocessors),
            LAUNCH_THREADS};
}
}    // namespace

int64_t kernel_rope_norm_scratch_bytes(const struct rope_args *rope, const struct kernel_target *target)
{
    return rope_norm_launch(*rope, target).blocks * 2 * rope->head_dim * (int64_t)sizeof(float);
}

int kernel_rope_norm(const struct rope_norm_args *args, const struct kernel_target *target)
{
    const struct rope_args *rope   = &args->rope;
    layout                  its    = layout_of(*rope);
    struct launch           launch = rope_norm_launch(*rope, target);
    int64_t shared  = rope->is_backward ? LAUNCH_THREADS / its.lanes * rope->head_dim * (int64_t)sizeof(float) : 0;
    bool    is_wide = launch_is_wide(its.half, addresses(rope->table, rope->packed, rope->query, rope->key_value,
                                                         args->scale, args->in)) &&
                   launch_is_wide(its.head_dim, 0);
    if (its.items > HELD * LAUNCH_WARP) {
        return cudaErrorInvalidValue;
    }
    int error = with_packets(rope->type, is_wide, [&](auto type, auto wide) {
        return with_flag(rope->is_backward, [&](auto backward) {
            return with_flag(its.items <= its.lanes, [&](auto single) {
                constexpr int held = single.value ? 1 : HELD;
                return enqueue(rope_norm_kernel<decltype(type), held, wide.value, backward.value>, launch, shared,
                               target, *args);
            });
        });
    });
    if (error != 0 || !rope->is_backward || args->scale_gradient == NULL) {
        return error;
    }
    struct part_sums_args sums = {
        args->scratch, {args->scale_gradient, nullptr}, launch.blocks, 1, 2 * rope->head_dim, args->accumulates};
    return enqueue_sum(sums, args->scale_gradient_type, target);
}
