// SPDX-License-Identifier: MIT
// Attention's backward pass: the gradients of queries along their keys, then those of keys and values along the queries
// that see them, each adding up in one fixed order.
#include "attention_tile.cuh"

namespace
{
// Row sums of out * d out: a warp a row of a head.
template <bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) row_sum_kernel(const struct attention_backward_args args)
{
    const attention_kernel_shape &shape = args.shape;
    const bf16                   *out = (const bf16 *)args.out, *gradient = (const bf16 *)args.out_gradient;
    int64_t                       rows = shape.batch * shape.sequence * shape.heads;
    int64_t                       warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LAUNCH_WARP;
    for (int64_t row = warp; row < rows; row += (int64_t)gridDim.x * blockDim.x / LAUNCH_WARP) {
        float sum = 0;
        for (int64_t i = threadIdx.x % LAUNCH_WARP * LAUNCH_WIDTH; i < shape.head_dim;
             i += LAUNCH_WARP * LAUNCH_WIDTH) {
            int   count = packet_elements<is_wide>(i, shape.head_dim);
            float one[LAUNCH_WIDTH], other[LAUNCH_WIDTH];
            load<is_wide>(one, out + row * shape.head_dim + i, count);
            load<is_wide>(other, gradient + row * shape.head_dim + i, count);
#pragma unroll
            for (int j = 0; j < LAUNCH_WIDTH; j++) {
                sum += one[j] * other[j];
            }
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
}    // namespace

int kernel_attention_backward(const struct attention_backward_args *args, const struct kernel_target *target)
{
    const attention_kernel_shape &shape = args->shape;
    if (!is_possible(shape)) {
        return cudaErrorInvalidValue;
    }
    struct launch sums = launch_warps(shape.batch * shape.sequence * shape.heads, target->multiprocessors);
    bool          wide = launch_is_wide(shape.head_dim, addresses(args->out, args->out_gradient));
    int           error =
        with_flag(wide, [&](auto is_wide) { return enqueue(row_sum_kernel<is_wide.value>, sums, 0, target, *args); });
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
