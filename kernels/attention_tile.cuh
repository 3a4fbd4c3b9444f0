// SPDX-License-Identifier: MIT
// Defines tile sizes, addresses, copies and masks of the attention kernels. A warp owns rows of one operand (queries or
// keys) and keeps their accumulators in registers. It iterates over tiles of the other operand, and the next tile is
// copied to shared memory during the computation. A warp owns 32 rows, or 16 if heads are padded to 256 elements,
// because accumulators for 32 such rows would not fit in registers.
#pragma once

#include "attention.h"
#include "device.cuh"
#include "gswbench/arithmetic.h"
#include "matrix.cuh"

namespace
{
constexpr int   WARPS = 4, THREADS = WARPS * LAUNCH_WARP;
constexpr float LOG2_E = 1.44269504088896340736f;

// Tile sizes for heads padded to `padded` elements, chosen so that accumulators fit in registers.
template <int padded> struct tile {
    static constexpr int pitch         = padded + MATRIX_GAP;
    static constexpr int columns       = padded / 8;    // number of mma results along a head, 8 columns each
    static constexpr int steps         = padded / MATRIX_SIDE;
    static constexpr int sides         = padded <= 128 ? 2 : 1;    // groups of MATRIX_SIDE rows per warp
    static constexpr int warp_rows     = sides * MATRIX_SIDE;
    static constexpr int rows          = WARPS * warp_rows;          // per block
    static constexpr int keys          = padded <= 128 ? 64 : 32;    // per tile in forward_kernel
    static constexpr int gradient_keys = 32;                         // per tile in query_kernel, which also holds dP
    static constexpr int queries       = padded <= 128 ? 64 : 32;    // per tile in key_kernel
    static constexpr int shared_pitch  = queries + MATRIX_GAP;       // row length of the shared P and dS
    static constexpr int row_bytes     = pitch * (int)sizeof(bf16);
    static constexpr int forward       = (rows + 4 * keys) * row_bytes;    // bytes of shared memory in forward_kernel
    static constexpr int by_query      = (2 * rows + 4 * gradient_keys) * row_bytes;
    static constexpr int by_key = (2 * rows + 4 * queries) * row_bytes + rows * shared_pitch * (int)sizeof(bf16) +
                                  4 * queries * (int)sizeof(float);
};

// Starts the asynchronous copy of a tile of rows of one head to shared memory. Rows and columns beyond the matrix
// become zero.
template <int padded, int rows, int threads = THREADS>
__device__ inline void copy_tile(bf16 *to, const bf16 *from, int stride, int rows_left, int head_dim)
{
    constexpr int packets = padded / 8;
    bool          is_wide = head_dim % 8 == 0;
    for (int i = threadIdx.x; i < rows * packets; i += threads) {
        int   row = i / packets, column = i % packets * 8;
        bf16 *place = to + row * tile<padded>::pitch + column;
        if (is_wide && row < rows_left && column < head_dim) {
            copy_start(place, from + row * stride + column);
            continue;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            place[j] = row < rows_left && column + j < head_dim ? from[row * stride + column + j] : (bf16)0;
        }
    }
}

// Offsets and row strides of one head in each tensor, in elements.
struct place {
    int64_t query, query_stride, out, out_stride, key, key_stride, value, statistics;
    int     head_dim, value_dim;
};

// Finds the offsets of one head. Keys and values may differ in size only if heads are padded to 256. Smaller tiles
// assume equal sizes, which saves registers.
template <int padded> __device__ inline place place_of(const attention_kernel_shape &shape, int64_t batch, int64_t head)
{
    constexpr bool has_own = padded == ATTENTION_HEAD_MAX;
    int64_t        kv_head = head / (shape.heads / shape.kv_heads);
    place          at;
    at.head_dim     = (int)shape.head_dim;
    at.value_dim    = has_own ? (int)shape.value_dim : at.head_dim;
    at.query_stride = shape.heads * shape.head_dim;
    at.out_stride   = has_own ? shape.heads * shape.value_dim : at.query_stride;
    at.key_stride = has_own ? shape.kv_heads * (shape.head_dim + shape.value_dim) : 2 * shape.kv_heads * shape.head_dim;
    at.query      = batch * shape.sequence * at.query_stride + head * shape.head_dim;
    at.out        = has_own ? batch * shape.sequence * at.out_stride + head * shape.value_dim : at.query;
    at.key        = batch * shape.keys * at.key_stride + kv_head * shape.head_dim;
    at.value      = at.key + shape.kv_heads * shape.head_dim;
    at.value += has_own ? kv_head * (shape.value_dim - shape.head_dim) : 0;
    at.statistics = (batch * shape.heads + head) * shape.sequence;
    return at;
}

// Returns 1 + the index of the last key that the query `row` sees.
__device__ inline int64_t seen_by(const attention_kernel_shape &shape, int64_t row)
{
    return shape.is_causal ? launch_minimum(shape.keys, shape.keys - shape.sequence + row + 1) : shape.keys;
}

// Returns 2^x by the ex2 instruction, which flushes subnormals to zero.
__device__ inline float power_of_two(float x)
{
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#else
    return exp2f(x);
#endif
}

// The keys that the queries of a warp's tile see. Queries and keys are counted from the first of the tile. Query 0 sees
// keys below `first`, and each later query sees `step` keys more, but none sees a key from `keys` on. With a window, a
// query sees only the last `window` of its keys.
template <bool has_window> struct visible_keys {
    int first, step, keys, window;
};
template <bool has_window>
__device__ inline visible_keys<has_window> visible_keys_of(const attention_kernel_shape &shape, int64_t query,
                                                           int64_t key)
{
    int keys = (int)(shape.keys - key), first = (int)(shape.keys - shape.sequence + query + 1 - key);
    return {has_window || shape.is_causal ? first : keys, has_window || shape.is_causal, keys,
            has_window ? (int)shape.window : 0};
}
template <bool has_window>
__device__ inline bool is_visible(const visible_keys<has_window> &visible, int query, int key)
{
    int end = visible.first + visible.step * query;
    return key < min(visible.keys, end) && (!has_window || key >= end - visible.window);
}
// Returns false only if no query from first_query to last_query sees any key from 0 to last_key. The kernel then skips
// the tile.
template <bool has_window>
__device__ inline bool any_visible(const visible_keys<has_window> &visible, int first_query, int last_query,
                                   int last_key)
{
    return 0 < min(visible.keys, visible.first + visible.step * last_query) &&
           (!has_window || last_key >= visible.first + visible.step * first_query - visible.window);
}
// Returns whether all queries up to last_query see all keys up to last_key. The kernel then skips the mask.
template <bool has_window>
__device__ inline bool all_visible(const visible_keys<has_window> &visible, int last_query, int last_key)
{
    return is_visible(visible, 0, last_key) && (!has_window || is_visible(visible, last_query, 0));
}

// Sets the scores of invisible keys to -infinity.
template <bool has_queries_as_rows, bool has_window, int sides, int columns>
__device__ inline void mask_scores(float (&scores)[sides][columns][4], const visible_keys<has_window> &visible)
{
#pragma unroll
    for (int i = 0; i < columns; i++) {
#pragma unroll
        for (int k = 0; k < 4 * sides; k++) {
            int    row = k / 2 * 8 + matrix_row(), column = i * 8 + matrix_column() + k % 2;
            bool   is_seen = has_queries_as_rows ? is_visible(visible, row, column) : is_visible(visible, column, row);
            float &score   = scores[k / 4][i][k % 4];
            score          = is_seen ? score : -INFINITY;
        }
    }
}

template <int sides, int columns>
__device__ inline void round_results(uint32_t (&to)[sides][columns][2], const float (&from)[sides][columns][4])
{
#pragma unroll
    for (int side = 0; side < sides; side++) {
#pragma unroll
        for (int i = 0; i < columns; i++) {
            to[side][i][0] = low_precision_pair(from[side][i][0], from[side][i][1]);
            to[side][i][1] = low_precision_pair(from[side][i][2], from[side][i][3]);
        }
    }
}

__device__ inline void store_pair(bf16 *to, float first, float second, bool adds)
{
    uint32_t *word   = reinterpret_cast<uint32_t *>(to);
    uint32_t  before = adds ? *word : 0;
    *word = low_precision_pair(first + __uint_as_float(before << 16), second + __uint_as_float(before & 0xffff0000u));
}
__device__ inline void store_pair(float *to, float first, float second, bool adds)
{
    float2 *pair = reinterpret_cast<float2 *>(to), before = adds ? *pair : float2{0, 0};
    *pair = float2{first + before.x, second + before.y};
}

template <typename T, int columns>
__device__ inline void store_row_as(T *row, const float (&values)[columns][4], int half, float factor, int width,
                                    bool adds)
{
    bool has_pairs = (uintptr_t)row % (2 * sizeof(T)) == 0;
#pragma unroll
    for (int i = 0; i < columns; i++) {
        int   column = i * 8 + matrix_column();
        float first = values[i][2 * half] * factor, second = values[i][2 * half + 1] * factor;
        if (has_pairs && column + 1 < width) {
            store_pair(row + column, first, second, adds);
            continue;
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            if (column + j < width) {
                float value = j == 0 ? first : second;
                low_precision(row + column + j, adds ? widen(row[column + j]) + value : value);
            }
        }
    }
}

// Stores one of a thread's two result rows (half: 0 or 1), multiplied by factor. If adds is set, adds the row to the
// stored values instead.
template <int columns>
__device__ inline void store_row(void *array, enum format type, int64_t at, const float (&values)[columns][4], int half,
                                 float factor, int width, bool adds)
{
    if (type == FORMAT_F32) {
        store_row_as((float *)array + at, values, half, factor, width, adds);
    } else {
        store_row_as((bf16 *)array + at, values, half, factor, width, adds);
    }
}

// row_maximum and row_total reduce a value over the four threads that hold elements of the same row of an mma result.
__device__ inline float row_maximum(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ inline float row_total(float value)
{
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Starts the copy of a tile of keys and values, from key `first` on, to one of the two shared-memory buffers (stage).
template <int padded, int keys>
__device__ inline void copy_keys(bf16 *stage, const bf16 *key_value, const place &at, int64_t first, int64_t all)
{
    const bf16 *from = key_value + first * at.key_stride;
    copy_tile<padded, keys>(stage, from + at.key, at.key_stride, all - first, at.head_dim);
    copy_tile<padded, keys>(stage + keys * tile<padded>::pitch, from + at.value, at.key_stride, all - first,
                            at.value_dim);
}

// Returns the index of the first key tile that the query sees.
template <bool has_window>
__device__ inline int first_tile(const attention_kernel_shape &shape, int64_t query, int keys)
{
    int64_t first = shape.keys - shape.sequence + query + 1 - shape.window;
    return has_window && first > 0 ? (int)(first / keys) : 0;
}

// Returns the number of key tiles, counted from key 0, up to the last key that the queries first .. first + rows - 1
// see.
__device__ inline int tiles_of(const attention_kernel_shape &shape, int64_t first, int rows, int keys)
{
    int64_t last = launch_minimum(first + rows, shape.sequence) - 1;
    return (int)launch_groups(seen_by(shape, last), keys);
}

// Returns the first query of this thread block. The first blocks to run get the last queries, which see the most keys,
// so that the last blocks to run are short.
__device__ inline int64_t first_query(int rows)
{
    return (int64_t)(gridDim.x - 1 - blockIdx.x) * rows;
}

template <typename Body> int with_width(int64_t head_dim, int64_t value_dim, Body body)
{
    bool is_equal = head_dim == value_dim;
    return is_equal && head_dim <= 64    ? body(constant<64>())
           : is_equal && head_dim <= 128 ? body(constant<128>())
                                         : body(constant<(int)ATTENTION_HEAD_MAX>());
}

template <typename Args, typename Body> int with_variant(const Args &args, Body body)
{
    return with_flag(args.shape.window > 0, [&](auto window) {
        return with_flag(args.slopes.heads > 0, [&](auto slopes) { return body(window, slopes); });
    });
}

bool is_possible(const attention_kernel_shape &shape)
{
    return shape.head_dim <= ATTENTION_HEAD_MAX && shape.value_dim <= ATTENTION_HEAD_MAX &&
           (shape.head_dim % 8 == 0) == (shape.value_dim % 8 == 0) && shape.heads % shape.kv_heads == 0 &&
           shape.keys >= shape.sequence;
}

// Returns a grid with one thread block per tile of rows, head and sequence of the batch.
dim3 grid_of(int64_t rows, int64_t of_block, int64_t heads, int64_t batch)
{
    return dim3((unsigned)launch_groups(rows, of_block), (unsigned)heads, (unsigned)batch);
}

// Returns the ALiBi slope of a head. It is divided by the softmax scale, because the kernel multiplies the scores by
// this scale later.
template <bool has_slopes, typename Args> __device__ inline float slope_of(const Args &args, int64_t head)
{
    return has_slopes ? arithmetic_slope(args.slopes.first_head + head, args.slopes.heads) / args.shape.scale : 0.0f;
}

// Adds the ALiBi bias, slope * (key - query). distance: positions from the first key to the first query of the scores.
template <bool has_slopes, bool has_queries_as_rows, int sides, int columns>
__device__ inline void add_alibi(float (&scores)[sides][columns][4], float slope, int64_t distance)
{
    if (has_slopes) {
        float step = has_queries_as_rows ? slope : -slope;
        float here = slope * (float)distance + step * (float)(matrix_row() - matrix_column());
#pragma unroll
        for (int i = 0; i < columns; i++) {
#pragma unroll
            for (int k = 0; k < 4 * sides; k++) {
                scores[k / 4][i][k % 4] -= here + step * (float)(k / 2 * 8 - i * 8 - k % 2);
            }
        }
    }
}

// The following functions are used by key_kernel (attention_backward.cu), which iterates over the query tiles that see
// a block of keys.
constexpr int key_threads = 2 * THREADS;

// Position of key_kernel in its loop over query tiles. The loop visits every query head that shares the key head.
struct walk {
    int64_t head, first;    // current head, and first query of the current tile
    int64_t from, heads;    // first query to visit in each head; number of heads left, including the current one
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

// Moves to the next query tile, and after a head's last tile to the next head. Returns false after the last head.
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

// Returns 1 + the last query that sees a key of the block of keys that ends before `key`. At least begin + 1, because
// key_kernel visits at least one tile of each head. begin: the first query that it visits.
template <bool has_window>
__device__ inline int64_t last_reader(const attention_kernel_shape &shape, int64_t key, int64_t begin)
{
    int64_t end = has_window ? key - 1 + shape.window - (shape.keys - shape.sequence) : shape.sequence;
    return end > begin ? launch_minimum(end, shape.sequence) : begin + 1;
}

// Stores P or dS, rounded to bf16, for this warp's half of the queries. Both warps that own these keys read the buffer.
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
