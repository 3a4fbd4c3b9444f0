// SPDX-License-Identifier: MIT
// Computes attention with an online softmax:
//
//   O = softmax(scale Q K^T) V, lse = log(sum(exp(scale Q K^T)))
//
// A thread block owns a tile of queries of one head and iterates over the key tiles that these queries see. Keys and
// values are double-buffered in shared memory. Scores and O stay in registers.
#include "attention_tile.cuh"

namespace
{
// Online softmax state of two query rows: the maximum score so far, and the sum of the exponentials relative to it.
// Four threads hold a row. They share its maximum, and each sums only its own scores.
struct row_pair {
    float largest[2], sum[2];
};

// Updates the online softmax for a new key tile. Replaces the scores by their exponentials relative to the new maximum,
// and rescales out and the sums from the old maximum to the new one.
template <bool has_window, int keys_columns, int columns>
__device__ inline void update_softmax(float (&scores)[keys_columns][4], float (&out)[columns][4], row_pair &rows,
                                      float factor)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float peak = rows.largest[half];
        each<keys_columns>([&](int i) { peak = fmaxf(peak, fmaxf(scores[i][2 * half], scores[i][2 * half + 1])); });
        // Without a window, every row sees a key in its first tile, so its maximum is finite. With a window, a row may
        // see its first key in a later tile. Until then a shift of 0 avoids computing -inf - -inf, which is NaN.
        peak               = row_maximum(peak);
        float shift        = has_window && peak == -INFINITY ? 0.0f : peak * factor;
        float keep         = power_of_two(rows.largest[half] * factor - shift);
        rows.largest[half] = peak;
        rows.sum[half] *= keep;
#pragma unroll
        for (int i = 0; i < keys_columns; i++) {
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &score = scores[i][2 * half + j];
                score        = power_of_two(score * factor - shift);
                rows.sum[half] += score;
            }
        }
#pragma unroll
        for (int i = 0; i < columns; i++) {
            out[i][2 * half] *= keep;
            out[i][2 * half + 1] *= keep;
        }
    }
}

template <int padded, bool has_window, bool has_slopes>
__global__ void __launch_bounds__(THREADS) forward_kernel(const struct attention_forward_args args)
{
    using size                 = tile<padded>;
    constexpr int sides        = size::sides;
    constexpr int keys_columns = size::keys / 8, stage_elements = 2 * size::keys * size::pitch;
    bf16         *queries = dynamic_shared<bf16>(), *stages = queries + size::rows * size::pitch;

    const attention_kernel_shape &shape     = args.shape;
    const bf16                   *key_value = (const bf16 *)args.key_value;
    int64_t                       first     = first_query(size::rows);
    place                         at        = place_of<padded>(shape, blockIdx.z, blockIdx.y);
    int                           warp_row  = (int)threadIdx.x / LAUNCH_WARP * size::warp_rows;
    int                           tiles     = tiles_of(shape, first, size::rows, size::keys);
    int                           begin     = first_tile<has_window>(shape, first, size::keys);
    float                         factor = shape.scale * LOG2_E, slope = slope_of<has_slopes>(args, blockIdx.y);

    copy_tile<padded, size::rows>(queries, (const bf16 *)args.query + at.query + first * at.query_stride,
                                  at.query_stride, shape.sequence - first, at.head_dim);
    copy_keys<padded, size::keys>(stages + begin % 2 * stage_elements, key_value, at, (int64_t)begin * size::keys,
                                  shape.keys);
    copy_mark();

    float    out[sides][size::columns][4] = {};
    row_pair rows[sides];
    each<sides>([&](int side) { rows[side] = {{-INFINITY, -INFINITY}, {0, 0}}; });
    for (int index = begin; index < tiles; index++) {
        const bf16 *keys = stages + index % 2 * stage_elements, *values = keys + size::keys * size::pitch;
        int64_t     start = (int64_t)index * size::keys;
        if (index + 1 < tiles) {
            copy_keys<padded, size::keys>(stages + (index + 1) % 2 * stage_elements, key_value, at, start + size::keys,
                                          shape.keys);
        }
        copy_mark();
        copy_wait<1>();
        __syncthreads();

        visible_keys<has_window> visible = visible_keys_of<has_window>(shape, first + warp_row, start);
        if (any_visible(visible, 0, size::warp_rows - 1, size::keys - 1)) {
            float    scores[sides][keys_columns][4] = {};
            uint32_t probabilities[sides][keys_columns][2];
            multiply_rows<sides, keys_columns, size::steps, size::pitch>(scores, queries + warp_row * size::pitch,
                                                                         keys);
            add_alibi<has_slopes, true>(scores, slope, args.slopes.distance + first + warp_row - start);
            if (!all_visible(visible, size::warp_rows - 1, size::keys - 1)) {
                mask_scores<true>(scores, visible);
            }
            each<sides>([&](int side) { update_softmax<has_window>(scores[side], out[side], rows[side], factor); });
            round_results(probabilities, scores);
            multiply_result<sides, size::columns, keys_columns, size::pitch>(out, probabilities, values);
        }
        __syncthreads();    // all warps have read this stage before the next copy overwrites it
    }

#pragma unroll
    for (int i = 0; i < 2 * sides; i++) {
        int     side = i / 2, half = i % 2;
        int64_t row   = first + warp_row + side * MATRIX_SIDE + matrix_row() + half * 8;
        float   total = row_total(rows[side].sum[half]);
        if (row < shape.sequence) {
            store_row(args.out, args.out_type, at.out + row * at.out_stride, out[side], half, 1.0f / total,
                      at.value_dim, false);
            if (matrix_column() == 0) {
                args.statistics[at.statistics + row] = rows[side].largest[half] * shape.scale + logf(total);
            }
        }
    }
}
}    // namespace

int kernel_attention_forward(const struct attention_forward_args *args, const struct kernel_target *target)
{
    const attention_kernel_shape &shape = args->shape;
    if (!is_possible(shape)) {
        return cudaErrorInvalidValue;
    }
    return with_width(shape.head_dim, shape.value_dim, [&](auto width) {
        constexpr int padded = decltype(width)::value;
        dim3          grid   = grid_of(shape.sequence, tile<padded>::rows, shape.heads, shape.batch);
        return with_variant(*args, [&](auto window, auto slopes) {
            return enqueue_grid(forward_kernel<padded, window.value, slopes.value>, grid, THREADS,
                                tile<padded>::forward, target, *args);
        });
    });
}

int kernel_attention_shared_bytes(int64_t head_dim, int64_t value_dim, bool is_backward)
{
    return with_width(head_dim, value_dim, [&](auto width) {
        using size = tile<decltype(width)::value>;
        return is_backward ? max(size::by_query, size::by_key) : size::forward;
    });
}
