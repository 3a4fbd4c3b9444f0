// SPDX-License-Identifier: MIT
// Computes the gradients of attention:
//
//   P  = exp(scale Q K^T - lse)    D  = rowsum(dO * O)    dS = P (dO V^T - D) scale
//   dQ = dS K                      dK = dS^T Q            dV = P^T dO
//
// row_sum_kernel computes D. Then each thread block of query_kernel owns a tile of queries, iterates over keys and
// computes dQ. Each thread block of key_kernel owns a tile of keys, iterates over queries and computes dK and dV. Both
// recompute P from the scores and the log-sum-exp. Every sum has a fixed order.
#include "attention_tile.cuh"

namespace
{
// Computes D, the row sums of O * dO. One warp handles one head of a token.
template <bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) row_sum_kernel(const struct attention_backward_args args)
{
    const attention_kernel_shape &shape = args.shape;
    const bf16                   *out = (const bf16 *)args.out, *gradient = (const bf16 *)args.out_gradient;
    int64_t                       rows = shape.batch * shape.sequence * shape.heads;
    for (int64_t row = own_warp(); row < rows; row += all_warps()) {
        float sum = 0;
        for (int64_t i = threadIdx.x % LAUNCH_WARP * LAUNCH_WIDTH; i < shape.value_dim;
             i += LAUNCH_WARP * LAUNCH_WIDTH) {
            int   count = packet_elements<is_wide>(i, shape.value_dim);
            float one[LAUNCH_WIDTH], other[LAUNCH_WIDTH];
            load<is_wide>(one, out + row * shape.value_dim + i, count);
            load<is_wide>(other, gradient + row * shape.value_dim + i, count);
            each([&](int j) { sum += one[j] * other[j]; });
        }
        sum = warp_sum(sum);
        if (threadIdx.x % LAUNCH_WARP == 0) {
            int64_t token = row / shape.heads, head = row % shape.heads;
            int64_t batch = token / shape.sequence;
            args.row_sums[(batch * shape.heads + head) * shape.sequence + token % shape.sequence] = sum;
        }
    }
}

// Replaces a score by P, and its slope dP = dO V^T by dS. factor includes log2(e), and shift is the log-sum-exp in base
// 2. So the exponential is one ex2 instruction.
__device__ inline void differentiate(float &score, float &slope, float factor, float shift, float row_sum, float scale)
{
    score = power_of_two(score * factor - shift);
    slope = score * (slope - row_sum) * scale;
}

template <int padded, bool has_window, bool has_slopes>
__global__ void __launch_bounds__(THREADS) query_kernel(const struct attention_backward_args args)
{
    using size          = tile<padded>;
    constexpr int sides = size::sides, tile_keys = size::gradient_keys;
    constexpr int keys_columns = tile_keys / 8, stage_elements = 2 * tile_keys * size::pitch;
    bf16         *queries = dynamic_shared<bf16>(), *gradients = queries + size::rows * size::pitch;
    bf16         *stages = gradients + size::rows * size::pitch;

    const attention_kernel_shape &shape     = args.shape;
    const bf16                   *key_value = (const bf16 *)args.key_value;
    int64_t                       first     = first_query(size::rows);
    place                         at        = place_of<padded>(shape, blockIdx.z, blockIdx.y);
    int                           warp_row  = (int)threadIdx.x / LAUNCH_WARP * size::warp_rows;
    int                           tiles     = tiles_of(shape, first, size::rows, tile_keys);
    int                           begin     = first_tile<has_window>(shape, first, tile_keys);
    int64_t                       here      = at.query + first * at.query_stride;
    int64_t                       out_here  = padded == ATTENTION_HEAD_MAX ? at.out + first * at.out_stride : here;
    float                         factor = shape.scale * LOG2_E, slope = slope_of<has_slopes>(args, blockIdx.y);

    copy_tile<padded, size::rows>(queries, (const bf16 *)args.query + here, at.query_stride, shape.sequence - first,
                                  at.head_dim);
    copy_tile<padded, size::rows>(gradients, (const bf16 *)args.out_gradient + out_here, at.out_stride,
                                  shape.sequence - first, at.value_dim);
    copy_keys<padded, tile_keys>(stages + begin % 2 * stage_elements, key_value, at, (int64_t)begin * tile_keys,
                                 shape.keys);
    copy_mark();

    float shift[sides][2], row_sum[sides][2];
#pragma unroll
    for (int i = 0; i < 2 * sides; i++) {
        int64_t row           = first + warp_row + i * 8 + matrix_row();
        shift[i / 2][i % 2]   = row < shape.sequence ? args.statistics[at.statistics + row] * LOG2_E : INFINITY;
        row_sum[i / 2][i % 2] = row < shape.sequence ? args.row_sums[at.statistics + row] : 0.0f;
    }
    float sums[sides][size::columns][4] = {};
    for (int index = begin; index < tiles; index++) {
        const bf16 *keys = stages + index % 2 * stage_elements, *values = keys + tile_keys * size::pitch;
        int64_t     start = (int64_t)index * tile_keys;
        if (index + 1 < tiles) {
            copy_keys<padded, tile_keys>(stages + (index + 1) % 2 * stage_elements, key_value, at, start + tile_keys,
                                         shape.keys);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        visible_keys<has_window> visible = visible_keys_of<has_window>(shape, first + warp_row, start);
        if (any_visible(visible, 0, size::warp_rows - 1, tile_keys - 1)) {
            float    scores[sides][keys_columns][4] = {}, slopes[sides][keys_columns][4] = {};
            uint32_t rounded[sides][keys_columns][2];
            multiply_rows<sides, keys_columns, size::steps, size::pitch>(scores, queries + warp_row * size::pitch,
                                                                         keys);
            multiply_rows<sides, keys_columns, size::steps, size::pitch>(slopes, gradients + warp_row * size::pitch,
                                                                         values);
            add_alibi<has_slopes, true>(scores, slope, args.slopes.distance + first + warp_row - start);
            if (!all_visible(visible, size::warp_rows - 1, tile_keys - 1)) {
                mask_scores<true>(scores, visible);
            }
#pragma unroll
            for (int i = 0; i < keys_columns; i++) {
#pragma unroll
                for (int k = 0; k < 4 * sides; k++) {
                    int side = k / 4, half = k % 4 / 2;
                    differentiate(scores[side][i][k % 4], slopes[side][i][k % 4], factor, shift[side][half],
                                  row_sum[side][half], shape.scale);
                }
            }
            round_results(rounded, slopes);
            multiply_result<sides, size::columns, keys_columns, size::pitch>(sums, rounded, keys);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2 * sides; i++) {
        int64_t row = first + warp_row + i * 8 + matrix_row();
        if (row < shape.sequence) {
            store_row(args.query_gradient, args.query_gradient_type, at.query + row * at.query_stride, sums[i / 2],
                      i % 2, 1.0f, at.head_dim, args.adds_query);
        }
    }
}

// Computes dK and dV. Two warps own the same rows of keys. For each query tile, each of the two computes P and dS for
// half of the queries and puts them in a shared buffer. Then each adds P^T dO and dS^T Q over all queries of the tile,
// for half of the columns of dV and dK.
template <int padded, bool has_window, bool has_slopes>
__global__ void __launch_bounds__(key_threads) key_kernel(const struct attention_backward_args args)
{
    using size          = tile<padded>;
    constexpr int sides = size::sides, part = padded / 2, columns = part / 8, pitch = size::pitch;
    constexpr int half_tile = size::queries / 2, queries_columns = half_tile / 8, steps = size::queries / MATRIX_SIDE;
    constexpr int stage_elements = 2 * size::queries * pitch, shared_pitch = size::shared_pitch;
    bf16         *keys = dynamic_shared<bf16>(), *values = keys + size::rows * pitch;
    bf16         *stages = values + size::rows * pitch, *exchange = stages + 2 * stage_elements;
    float        *rows = (float *)(exchange + size::rows * shared_pitch);

    const attention_kernel_shape &shape    = args.shape;
    int64_t                       group    = shape.heads / shape.kv_heads;
    int64_t                       first    = (int64_t)blockIdx.x * size::rows;
    int64_t                       earlier  = shape.keys - shape.sequence;
    place                         at       = place_of<padded>(shape, blockIdx.z, blockIdx.y * group);
    int                           warp     = (int)threadIdx.x / LAUNCH_WARP;
    int                           warp_row = warp % WARPS * size::warp_rows, half = warp / WARPS;
    int64_t                       begin  = shape.is_causal && first > earlier ? first - earlier : 0;
    float                         factor = shape.scale * LOG2_E;
    int64_t                       end    = last_reader<has_window>(shape, first + size::rows, begin);
    walk  here = {.head = blockIdx.y * group, .first = begin, .from = begin, .heads = group}, next = here;
    bf16 *exchanged = exchange + warp_row * shared_pitch, *own_exchange = exchanged + half * half_tile;

    const bf16 *pairs = (const bf16 *)args.key_value + first * at.key_stride;
    copy_tile<padded, size::rows, key_threads>(keys, pairs + at.key, at.key_stride, shape.keys - first, at.head_dim);
    copy_tile<padded, size::rows, key_threads>(values, pairs + at.value, at.key_stride, shape.keys - first,
                                               at.value_dim);
    copy_queries<padded>(stages, rows, args, here);
    copy_mark();

    float key_sums[sides][columns][4] = {}, value_sums[sides][columns][4] = {};
    bool  has_next = true;
    for (int index = 0; has_next; index++) {
        const bf16  *queries = stages + index % 2 * stage_elements, *gradients = queries + size::queries * pitch;
        const float *shift = rows + index % 2 * 2 * size::queries + half * half_tile;
        here               = next;
        has_next           = advance(next, size::queries, end);
        if (has_next) {
            copy_queries<padded>(stages + (index + 1) % 2 * stage_elements, rows + (index + 1) % 2 * 2 * size::queries,
                                 args, next);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        // Both warps that own the same keys must skip or compute a tile together, because each reads the P and dS of
        // the other. So the test covers all queries of the tile.
        visible_keys<has_window> visible =
            visible_keys_of<has_window>(shape, here.first + half * half_tile, first + warp_row);
        int      before   = half * half_tile;
        bool     has_work = any_visible(visible, -before, size::queries - before - 1, size::warp_rows - 1);
        uint32_t slopes_rounded[sides][queries_columns][2];
        if (has_work) {
            float    scores[sides][queries_columns][4] = {}, slopes[sides][queries_columns][4] = {};
            uint32_t rounded[sides][queries_columns][2];
            multiply_rows<sides, queries_columns, size::steps, pitch>(scores, keys + warp_row * pitch,
                                                                      queries + half * half_tile * pitch);
            multiply_rows<sides, queries_columns, size::steps, pitch>(slopes, values + warp_row * pitch,
                                                                      gradients + half * half_tile * pitch);
            add_alibi<has_slopes, false>(scores, slope_of<has_slopes>(args, here.head),
                                         args.slopes.distance + here.first + half * half_tile - (first + warp_row));
            if (!all_visible(visible, half_tile - 1, size::warp_rows - 1)) {
                mask_scores<false>(scores, visible);
            }
#pragma unroll
            for (int i = 0; i < queries_columns; i++) {
#pragma unroll
                for (int k = 0; k < 4 * sides; k++) {
                    int column = i * 8 + matrix_column() + k % 2;
                    differentiate(scores[k / 4][i][k % 4], slopes[k / 4][i][k % 4], factor, shift[column],
                                  shift[size::queries + column], shape.scale);
                }
            }
            round_results(rounded, scores);
            round_results(slopes_rounded, slopes);
            share<sides, queries_columns, shared_pitch>(own_exchange, rounded);
        }
        __syncthreads();
        if (has_work) {
            multiply_stored<sides, columns, steps, shared_pitch, pitch>(value_sums, exchanged, gradients + half * part);
        }
        __syncthreads();    // both warps have read P before dS overwrites it
        if (has_work) {
            share<sides, queries_columns, shared_pitch>(own_exchange, slopes_rounded);
        }
        __syncthreads();
        if (has_work) {
            multiply_stored<sides, columns, steps, shared_pitch, pitch>(key_sums, exchanged, queries + half * part);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2 * sides; i++) {
        int64_t row = first + warp_row + i * 8 + matrix_row();
        if (row < shape.keys) {
            int64_t to = row * at.key_stride + half * part;
            store_row(args.key_value_gradient, args.key_value_gradient_type, at.key + to, key_sums[i / 2], i % 2, 1.0f,
                      at.head_dim - half * part, args.adds_key_value);
            store_row(args.key_value_gradient, args.key_value_gradient_type, at.value + to, value_sums[i / 2], i % 2,
                      1.0f, at.value_dim - half * part, args.adds_key_value);
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
    bool          wide = launch_is_wide(shape.value_dim, addresses(args->out, args->out_gradient));
    int           error =
        with_flag(wide, [&](auto is_wide) { return enqueue(row_sum_kernel<is_wide.value>, sums, 0, target, *args); });
    if (error != 0) {
        return error;
    }
    return with_width(shape.head_dim, shape.value_dim, [&](auto width) {
        constexpr int padded = decltype(width)::value;
        using size           = tile<padded>;
        dim3 queries         = grid_of(shape.sequence, size::rows, shape.heads, shape.batch);
        dim3 keys            = grid_of(shape.keys, size::rows, shape.kv_heads, shape.batch);
        return with_variant(*args, [&](auto window, auto slopes) {
            int failure = enqueue_grid(query_kernel<padded, window.value, slopes.value>, queries, THREADS,
                                       size::by_query, target, *args);
            return failure != 0 ? failure
                                : enqueue_grid(key_kernel<padded, window.value, slopes.value>, keys, key_threads,
                                               size::by_key, target, *args);
        });
    });
}
