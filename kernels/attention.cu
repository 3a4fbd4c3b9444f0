// SPDX-License-Identifier: MIT
// Tiles of queries against tiles of keys: a warp owns 16 rows of one side and keeps what is summed over the other side
// in registers, while the next tile of that side is copied in.
#include "attention.h"
#include "device.cuh"
#include "matrix.cuh"

namespace
{
constexpr int   WARPS = ATTENTION_ROWS / MATRIX_SIDE, THREADS = WARPS * LAUNCH_WARP;
constexpr float LOG2_E = 1.44269504088896340736f;

// Sizes for a head of at most `padded` elements. Few enough rows to keep the sums in registers.
template <int padded> struct tile {
    static constexpr int pitch     = padded + MATRIX_GAP;
    static constexpr int columns   = padded / 8;    // results of 8 columns side by side
    static constexpr int steps     = padded / MATRIX_SIDE;
    static constexpr int keys      = padded <= 128 ? 64 : 32;         // of the passes over keys
    static constexpr int queries   = padded <= 64 ? 64 : 32;          // of the pass over queries
    static constexpr int part      = padded <= 128 ? padded : 128;    // columns of a key's gradient at a time
    static constexpr int row_bytes = pitch * (int)sizeof(bf16);
    static constexpr int forward   = (ATTENTION_ROWS + 4 * keys) * row_bytes;    // bytes of shared memory
    static constexpr int by_query  = (2 * ATTENTION_ROWS + 4 * keys) * row_bytes;
    static constexpr int by_key    = (2 * ATTENTION_ROWS + 4 * queries) * row_bytes + 4 * queries * (int)sizeof(float);
};

// Starts the copy of rows of one head into a tile; rows and columns beyond the end become zeros.
template <int padded, int rows>
__device__ inline void copy_tile(bf16 *to, const bf16 *from, int64_t stride, int64_t rows_left, int head_dim)
{
    constexpr int packets = padded / 8;
    bool          is_wide = head_dim % 8 == 0;
    for (int i = threadIdx.x; i < rows * packets; i += THREADS) {
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

// The numbers of rows before and the distance of rows, of queries and of keys, of one head.
struct place {
    int64_t query, query_stride, key, key_stride, value, statistics;
    int     head_dim;
};

__device__ inline place place_of(const attention_kernel_shape &shape, int64_t batch, int64_t head)
{
    int64_t kv_head = head / (shape.heads / shape.kv_heads);
    place   at;
    at.head_dim     = (int)shape.head_dim;
    at.query_stride = shape.heads * shape.head_dim;
    at.key_stride   = 2 * shape.kv_heads * shape.head_dim;
    at.query        = batch * shape.sequence * at.query_stride + head * shape.head_dim;
    at.key          = batch * shape.keys * at.key_stride + kv_head * shape.head_dim;
    at.value        = at.key + shape.kv_heads * shape.head_dim;
    at.statistics   = (batch * shape.heads + head) * shape.sequence;
    return at;
}

// Keys that query row sees: the leading ones.
__device__ inline int64_t seen_by(const attention_kernel_shape &shape, int64_t row)
{
    return shape.is_causal ? launch_minimum(shape.keys, shape.keys - shape.sequence + row + 1) : shape.keys;
}

template <int columns> __device__ inline void round_results(uint32_t (&to)[columns][2], const float (&from)[columns][4])
{
#pragma unroll
    for (int i = 0; i < columns; i++) {
        to[i][0] = narrow_pair(from[i][0], from[i][1]);
        to[i][1] = narrow_pair(from[i][2], from[i][3]);
    }
}

__device__ inline void store_pair(bf16 *to, float first, float second, bool adds)
{
    uint32_t *word   = reinterpret_cast<uint32_t *>(to);
    uint32_t  before = adds ? *word : 0;
    *word = narrow_pair(first + __uint_as_float(before << 16), second + __uint_as_float(before & 0xffff0000u));
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
                narrow(row + column + j, adds ? widen(row[column + j]) + value : value);
            }
        }
    }
}

// One of a thread's two rows of results, times factor, from an element of an array on; added to it on request.
template <int columns>
__device__ inline void store_row(void *array, enum dtype type, int64_t at, const float (&values)[columns][4], int half,
                                 float factor, int width, bool adds)
{
    if (type == DTYPE_F32) {
        store_row_as((float *)array + at, values, half, factor, width, adds);
    } else {
        store_row_as((bf16 *)array + at, values, half, factor, width, adds);
    }
}

// Over the four threads that hold a row.
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

// Keys and values of a tile of the sequence of keys, into one of two stages.
template <int padded>
__device__ inline void copy_keys(bf16 *stage, const bf16 *key_value, const place &at, int64_t first, int64_t keys)
{
    constexpr int keys_each = tile<padded>::keys;
    copy_tile<padded, keys_each>(stage, key_value + at.key + first * at.key_stride, at.key_stride, keys - first,
                                 at.head_dim);
    copy_tile<padded, keys_each>(stage + keys_each * tile<padded>::pitch, key_value + at.value + first * at.key_stride,
                                 at.key_stride, keys - first, at.head_dim);
}

// Tiles of keys that some query of the block sees.
template <int padded> __device__ inline int tiles_of(const attention_kernel_shape &shape, int64_t first)
{
    int64_t last = launch_minimum(first + ATTENTION_ROWS, shape.sequence) - 1;
    return (int)launch_groups(seen_by(shape, last), tile<padded>::keys);
}

// The block with the most keys comes first, so that the last to end are short.
__device__ inline int64_t first_query()
{
    return (int64_t)(gridDim.x - 1 - blockIdx.x) * ATTENTION_ROWS;
}

template <int padded>
__global__ void __launch_bounds__(THREADS) forward_kernel(const struct attention_forward_args args)
{
    using size                 = tile<padded>;
    constexpr int keys_columns = size::keys / 8, stage_elements = 2 * size::keys * size::pitch;
    bf16         *queries = dynamic_shared<bf16>(), *stages = queries + ATTENTION_ROWS * size::pitch;

    const attention_kernel_shape &shape     = args.shape;
    const bf16                   *key_value = (const bf16 *)args.key_value;
    int64_t                       first     = first_query();
    place                         at        = place_of(shape, blockIdx.z, blockIdx.y);
    int                           warp_row  = (int)threadIdx.x / LAUNCH_WARP * MATRIX_SIDE;
    int                           tiles     = tiles_of<padded>(shape, first);
    float                         factor    = shape.scale * LOG2_E;

    copy_tile<padded, ATTENTION_ROWS>(queries, (const bf16 *)args.query + at.query + first * at.query_stride,
                                      at.query_stride, shape.sequence - first, at.head_dim);
    copy_keys<padded>(stages, key_value, at, 0, shape.keys);
    copy_mark();

    float out[size::columns][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    for (int index = 0; index < tiles; index++) {
        const bf16 *keys = stages + index % 2 * stage_elements, *values = keys + size::keys * size::pitch;
        if (index + 1 < tiles) {
            copy_keys<padded>(stages + (index + 1) % 2 * stage_elements, key_value, at,
                              (int64_t)(index + 1) * size::keys, shape.keys);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        float scores[keys_columns][4] = {};
        multiply_rows<keys_columns, size::steps, size::pitch>(scores, queries + warp_row * size::pitch, keys);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t seen = seen_by(shape, first + warp_row + matrix_row() + half * 8) - (int64_t)index * size::keys;
            float   peak = largest[half];
#pragma unroll
            for (int i = 0; i < keys_columns; i++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float &score = scores[i][2 * half + j];
                    score        = i * 8 + matrix_column() + j < seen ? score : -INFINITY;
                    peak         = fmaxf(peak, score);
                }
            }
            // The first tile has a key for every row, so that the peak is a number from then on.
            peak          = row_maximum(peak);
            float keep    = exp2f((largest[half] - peak) * factor);
            largest[half] = peak;
            sum[half] *= keep;
#pragma unroll
            for (int i = 0; i < keys_columns; i++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float &score = scores[i][2 * half + j];
                    score        = exp2f((score - peak) * factor);
                    sum[half] += score;
                }
            }
#pragma unroll
            for (int i = 0; i < size::columns; i++) {
                out[i][2 * half] *= keep;
                out[i][2 * half + 1] *= keep;
            }
        }
        uint32_t probabilities[keys_columns][2];
        round_results(probabilities, scores);
        multiply_result<size::columns, keys_columns, size::pitch>(out, probabilities, values);
        __syncthreads();    // this stage is copied into next
    }

#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t row   = first + warp_row + matrix_row() + half * 8;
        float   total = row_total(sum[half]);
        if (row < shape.sequence) {
            store_row(args.out, args.out_type, at.query + row * at.query_stride, out, half, 1.0f / total, at.head_dim,
                      false);
            if (matrix_column() == 0) {
                args.statistics[at.statistics + row] = largest[half] * shape.scale + logf(total);
            }
        }
    }
}

// Row sums of out * d out: a warp a row of a head.
__global__ void __launch_bounds__(LAUNCH_THREADS) row_sum_kernel(const struct attention_backward_args args)
{
    const attention_kernel_shape &shape = args.shape;
    const bf16                   *out = (const bf16 *)args.out, *gradient = (const bf16 *)args.out_gradient;
    int64_t                       rows = shape.batch * shape.sequence * shape.heads;
    int64_t                       warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LAUNCH_WARP;
    for (int64_t row = warp; row < rows; row += (int64_t)gridDim.x * blockDim.x / LAUNCH_WARP) {
        float sum = 0;
        for (int64_t i = threadIdx.x % LAUNCH_WARP; i < shape.head_dim; i += LAUNCH_WARP) {
            sum += widen(out[row * shape.head_dim + i]) * widen(gradient[row * shape.head_dim + i]);
        }
        sum = warp_sum(sum);
        if (threadIdx.x % LAUNCH_WARP == 0) {
            int64_t token = row / shape.heads, head = row % shape.heads;
            int64_t batch = token / shape.sequence;
            args.row_sums[(batch * shape.heads + head) * shape.sequence + token % shape.sequence] = sum;
        }
    }
}

template <int padded> __global__ void __launch_bounds__(THREADS) query_kernel(const struct attention_backward_args args)
{
    using size                 = tile<padded>;
    constexpr int keys_columns = size::keys / 8, stage_elements = 2 * size::keys * size::pitch;
    bf16         *queries = dynamic_shared<bf16>(), *gradients = queries + ATTENTION_ROWS * size::pitch;
    bf16         *stages = gradients + ATTENTION_ROWS * size::pitch;

    const attention_kernel_shape &shape     = args.shape;
    const bf16                   *key_value = (const bf16 *)args.key_value;
    int64_t                       first     = first_query();
    place                         at        = place_of(shape, blockIdx.z, blockIdx.y);
    int                           warp_row  = (int)threadIdx.x / LAUNCH_WARP * MATRIX_SIDE;
    int                           tiles     = tiles_of<padded>(shape, first);
    int64_t                       here      = at.query + first * at.query_stride;
    float                         factor    = shape.scale * LOG2_E;

    copy_tile<padded, ATTENTION_ROWS>(queries, (const bf16 *)args.query + here, at.query_stride, shape.sequence - first,
                                      at.head_dim);
    copy_tile<padded, ATTENTION_ROWS>(gradients, (const bf16 *)args.out_gradient + here, at.query_stride,
                                      shape.sequence - first, at.head_dim);
    copy_keys<padded>(stages, key_value, at, 0, shape.keys);
    copy_mark();

    float shift[2], row_sum[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t row   = first + warp_row + matrix_row() + half * 8;
        shift[half]   = row < shape.sequence ? args.statistics[at.statistics + row] * LOG2_E : INFINITY;
        row_sum[half] = row < shape.sequence ? args.row_sums[at.statistics + row] : 0.0f;
    }
    float sums[size::columns][4] = {};
    for (int index = 0; index < tiles; index++) {
        const bf16 *keys = stages + index % 2 * stage_elements, *values = keys + size::keys * size::pitch;
        if (index + 1 < tiles) {
            copy_keys<padded>(stages + (index + 1) % 2 * stage_elements, key_value, at,
                              (int64_t)(index + 1) * size::keys, shape.keys);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        float scores[keys_columns][4] = {}, slopes[keys_columns][4] = {};
        multiply_rows<keys_columns, size::steps, size::pitch>(scores, queries + warp_row * size::pitch, keys);
        multiply_rows<keys_columns, size::steps, size::pitch>(slopes, gradients + warp_row * size::pitch, values);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t seen = seen_by(shape, first + warp_row + matrix_row() + half * 8) - (int64_t)index * size::keys;
#pragma unroll
            for (int i = 0; i < keys_columns; i++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    int   k           = 2 * half + j;
                    bool  is_seen     = i * 8 + matrix_column() + j < seen;
                    float probability = is_seen ? exp2f(scores[i][k] * factor - shift[half]) : 0.0f;
                    scores[i][k]      = probability * (slopes[i][k] - row_sum[half]) * shape.scale;
                }
            }
        }
        uint32_t rounded[keys_columns][2];
        round_results(rounded, scores);
        multiply_result<size::columns, keys_columns, size::pitch>(sums, rounded, keys);
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t row = first + warp_row + matrix_row() + half * 8;
        if (row < shape.sequence) {
            store_row(args.query_gradient, args.query_gradient_type, at.query + row * at.query_stride, sums, half, 1.0f,
                      at.head_dim, args.adds_query);
        }
    }
}

// The walk of a block of keys over the queries that see it, of all heads that share them: one tile after another.
struct walk {
    int64_t head, first;    // of the tile
    int64_t from, heads;    // where each head begins; those left
};

template <int padded>
__device__ inline void copy_queries(bf16 *stage, float *rows, const struct attention_backward_args &args,
                                    const walk &at_tile)
{
    constexpr int                 queries = tile<padded>::queries;
    const attention_kernel_shape &shape   = args.shape;
    place                         at      = place_of(shape, blockIdx.z, at_tile.head);
    int64_t here = at.query + at_tile.first * at.query_stride, left = shape.sequence - at_tile.first;
    copy_tile<padded, queries>(stage, (const bf16 *)args.query + here, at.query_stride, left, at.head_dim);
    copy_tile<padded, queries>(stage + queries * tile<padded>::pitch, (const bf16 *)args.out_gradient + here,
                               at.query_stride, left, at.head_dim);
    for (int i = threadIdx.x; i < queries; i += THREADS) {
        rows[i]           = i < left ? args.statistics[at.statistics + at_tile.first + i] * LOG2_E : INFINITY;
        rows[queries + i] = i < left ? args.row_sums[at.statistics + at_tile.first + i] : 0.0f;
    }
}

// False at the end of the last head.
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

template <int padded> __global__ void __launch_bounds__(THREADS) key_kernel(const struct attention_backward_args args)
{
    using size                    = tile<padded>;
    constexpr int queries_columns = size::queries / 8, stage_elements = 2 * size::queries * size::pitch;
    constexpr int parts = padded / size::part, columns = size::part / 8;
    bf16         *keys = dynamic_shared<bf16>(), *values = keys + ATTENTION_ROWS * size::pitch;
    bf16         *stages = values + ATTENTION_ROWS * size::pitch;
    float        *rows   = (float *)(stages + 2 * stage_elements);

    const attention_kernel_shape &shape    = args.shape;
    int64_t                       group    = shape.heads / shape.kv_heads;
    int64_t                       first    = (int64_t)(blockIdx.x / parts) * ATTENTION_ROWS;
    int                           part     = (int)(blockIdx.x % parts) * size::part;
    int64_t                       earlier  = shape.keys - shape.sequence;
    place                         at       = place_of(shape, blockIdx.z, blockIdx.y * group);
    int                           warp_row = (int)threadIdx.x / LAUNCH_WARP * MATRIX_SIDE;
    int64_t                       begin    = shape.is_causal && first > earlier ? first - earlier : 0;
    float                         factor   = shape.scale * LOG2_E;
    walk here = {.head = blockIdx.y * group, .first = begin, .from = begin, .heads = group}, next = here;

    const bf16 *pairs = (const bf16 *)args.key_value;
    copy_tile<padded, ATTENTION_ROWS>(keys, pairs + at.key + first * at.key_stride, at.key_stride, shape.keys - first,
                                      at.head_dim);
    copy_tile<padded, ATTENTION_ROWS>(values, pairs + at.value + first * at.key_stride, at.key_stride,
                                      shape.keys - first, at.head_dim);
    copy_queries<padded>(stages, rows, args, here);
    copy_mark();

    float key_sums[columns][4] = {}, value_sums[columns][4] = {};
    bool  has_next = true;
    for (int index = 0; has_next; index++) {
        const bf16  *queries = stages + index % 2 * stage_elements, *gradients = queries + size::queries * size::pitch;
        const float *shift = rows + index % 2 * 2 * size::queries, *row_sum = shift + size::queries;
        here     = next;
        has_next = advance(next, size::queries, shape.sequence);
        if (has_next) {
            copy_queries<padded>(stages + (index + 1) % 2 * stage_elements, rows + (index + 1) % 2 * 2 * size::queries,
                                 args, next);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        float scores[queries_columns][4] = {}, slopes[queries_columns][4] = {};
        multiply_rows<queries_columns, size::steps, size::pitch>(scores, keys + warp_row * size::pitch, queries);
        multiply_rows<queries_columns, size::steps, size::pitch>(slopes, values + warp_row * size::pitch, gradients);
#pragma unroll
        for (int i = 0; i < queries_columns; i++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int     column  = i * 8 + matrix_column() + k % 2;
                int64_t key     = first + warp_row + matrix_row() + k / 2 * 8;
                bool    is_seen = key < seen_by(shape, here.first + column);
                scores[i][k]    = is_seen ? exp2f(scores[i][k] * factor - shift[column]) : 0.0f;
                slopes[i][k]    = scores[i][k] * (slopes[i][k] - row_sum[column]) * shape.scale;
            }
        }
        uint32_t rounded[queries_columns][2];
        round_results(rounded, scores);
        multiply_result<columns, queries_columns, size::pitch>(value_sums, rounded, gradients + part);
        round_results(rounded, slopes);
        multiply_result<columns, queries_columns, size::pitch>(key_sums, rounded, queries + part);
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int64_t row = first + warp_row + matrix_row() + half * 8;
        if (row < shape.keys) {
            int64_t to = row * at.key_stride + part;
            store_row(args.key_value_gradient, args.key_value_gradient_type, at.key + to, key_sums, half, 1.0f,
                      at.head_dim - part, args.adds_key_value);
            store_row(args.key_value_gradient, args.key_value_gradient_type, at.value + to, value_sums, half, 1.0f,
                      at.head_dim - part, args.adds_key_value);
        }
    }
}

template <int padded> struct width {
    static constexpr int value = padded;
};

template <typename Body> int with_width(int64_t head_dim, Body body)
{
    return head_dim <= 64 ? body(width<64>()) : head_dim <= 128 ? body(width<128>()) : body(width<256>());
}

bool is_possible(const attention_kernel_shape &shape)
{
    return shape.head_dim <= ATTENTION_HEAD_MAX && shape.heads % shape.kv_heads == 0 && shape.keys >= shape.sequence;
}

// A block for each run of so many rows, each head and each sequence.
dim3 grid_of(int64_t rows, int64_t heads, int64_t batch)
{
    return dim3((unsigned)launch_groups(rows, ATTENTION_ROWS), (unsigned)heads, (unsigned)batch);
}
}    // namespace

int kernel_attention_forward(const struct attention_forward_args *args, const struct kernel_target *target)
{
    const attention_kernel_shape &shape = args->shape;
    if (!is_possible(shape)) {
        return cudaErrorInvalidValue;
    }
    return with_width(shape.head_dim, [&](auto width) {
        constexpr int padded = decltype(width)::value;
        return enqueue_grid(forward_kernel<padded>, grid_of(shape.sequence, shape.heads, shape.batch), THREADS,
                            tile<padded>::forward, target, *args);
    });
}

int kernel_attention_backward(const struct attention_backward_args *args, const struct kernel_target *target)
{
    const attention_kernel_shape &shape = args->shape;
    if (!is_possible(shape)) {
        return cudaErrorInvalidValue;
    }
    struct launch sums  = launch_warps(shape.batch * shape.sequence * shape.heads, target->multiprocessors);
    int           error = enqueue(row_sum_kernel, sums, 0, target, *args);
    if (error != 0) {
        return error;
    }
    return with_width(shape.head_dim, [&](auto width) {
        constexpr int padded  = decltype(width)::value;
        dim3          queries = grid_of(shape.sequence, shape.heads, shape.batch);
        dim3          keys    = grid_of(shape.keys, shape.kv_heads, shape.batch);
        keys.x *= padded / tile<padded>::part;
        int failure = enqueue_grid(query_kernel<padded>, queries, THREADS, tile<padded>::by_query, target, *args);
        return failure != 0 ? failure
                            : enqueue_grid(key_kernel<padded>, keys, THREADS, tile<padded>::by_key, target, *args);
    });
}

int kernel_attention_shared_bytes(int64_t head_dim, bool is_backward)
{
    return with_width(head_dim, [&](auto width) {
        using size = tile<decltype(width)::value>;
        return is_backward ? max(size::by_query, size::by_key) : size::forward;
    });
}
