// SPDX-License-Identifier: MIT
// Attention's forward pass: a block walks the keys that its queries see.
#include "attention_tile.cuh"

namespace
{
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

int kernel_attention_shared_bytes(int64_t head_dim, bool is_backward)
{
    return with_width(head_dim, [&](auto width) {
        using size = tile<decltype(width)::value>;
        return is_backward ? max(size::by_query, size::by_key) : size::forward;
    });
}
