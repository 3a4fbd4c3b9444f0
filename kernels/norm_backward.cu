// SPDX-License-Identifier: MIT
// The gradient of a norm, a block a row as forward. The gradients of the weights are summed in two stages: each block
// over its rows, in shared memory, then the blocks' sums in order.
#include "norm_row.cuh"

namespace
{
// What a thread knows of its row in the backward pass.
template <typename T> struct gradient_row {
    packet<T> gradient[held], x[held];
    float     mean, inverse;
};

// Element j of a packet: what the norm's own gradient is a function of.
struct gradient_values {
    float gradient[width], normalised[width], product[width];
};

template <typename T, bool is_wide>
__device__ inline void read_values(gradient_values *values, const gradient_row<T> &row, int i, const place &here,
                                   const struct norm_backward_args &args)
{
    float x[width], factor[width];
    unpack(values->gradient, row.gradient[i]);
    unpack(x, row.x[i]);
    load<is_wide>(factor, (const T *)args.weight + here.at, here.count);
#pragma unroll
    for (int j = 0; j < width; j++) {
        values->normalised[j] = (x[j] - row.mean) * row.inverse;
        values->product[j]    = values->gradient[j] * (factor[j] + args.weight_offset);
    }
}

// Adds the row to the gradients of weight and bias, and to along[] its parts along ones and along x.
// sums holds element j of packet c at j * packets + c, so that neighbouring threads meet different banks; those of the
// bias follow. No other thread touches a thread's packets. Elements beyond the row are zeros and add nothing.
template <typename T, bool is_wide, bool has_bias>
__device__ inline void add_row(float *sums, float (&along)[2], const gradient_row<T> &row,
                               const struct norm_backward_args &args)
{
    int packets = (int)launch_groups(args.columns, width);
#pragma unroll
    for (int i = 0; i < held; i++) {
        place           here = place_of<is_wide>(i, args.columns);
        gradient_values values;
        if (here.is_here) {
            read_values<T, is_wide>(&values, row, i, here, args);
#pragma unroll
            for (int j = 0; j < width; j++) {
                float *sum = sums + j * packets + here.at / width;
                along[0] += values.product[j];
                along[1] += values.product[j] * values.normalised[j];
                *sum += values.gradient[j] * values.normalised[j];
                if (has_bias) {
                    sum[width * packets] += values.gradient[j];
                }
            }
        }
    }
}

template <typename T, bool is_wide>
__device__ inline void write_row(const gradient_row<T> &row, const float (&along)[2], int64_t begin,
                                 const struct norm_backward_args &args)
{
    const T *residual = (const T *)args.residual;
#pragma unroll
    for (int i = 0; i < held; i++) {
        place           here = place_of<is_wide>(i, args.columns);
        gradient_values values;
        float           added[width] = {};
        if (here.is_here) {
            read_values<T, is_wide>(&values, row, i, here, args);
            if (residual != NULL) {
                load<is_wide>(added, residual + begin + here.at, here.count);
            }
#pragma unroll
            for (int j = 0; j < width; j++) {
                added[j] += row.inverse * (values.product[j] - along[0] - values.normalised[j] * along[1]);
            }
            store<is_wide>((T *)args.out + begin + here.at, added, here.count);
        }
    }
}

template <typename T, bool is_wide, bool has_bias>
__global__ void __launch_bounds__(NORM_THREADS_MAX) backward_kernel(const struct norm_backward_args args)
{
    float *sums    = dynamic_shared<float>();    // [1 or 2, width, packets]
    int    packets = (int)launch_groups(args.columns, width);
    for (int i = threadIdx.x; i < packets; i += blockDim.x) {
#pragma unroll
        for (int j = 0; j < (has_bias ? 2 : 1) * width; j++) {
            sums[j * packets + i] = 0;
        }
    }
    for (int64_t index = blockIdx.x; index < args.rows; index += gridDim.x) {
        gradient_row<T> row   = {};
        int64_t         begin = index * args.columns;
#pragma unroll
        for (int i = 0; i < held; i++) {
            place here = place_of<is_wide>(i, args.columns);
            if (here.is_here) {
                row.gradient[i] = fetch<is_wide>((const T *)args.gradient + begin + here.at, here.count);
                row.x[i]        = fetch<is_wide>((const T *)args.x + begin + here.at, here.count);
            }
        }
        row.mean       = args.statistics[2 * index];
        row.inverse    = args.statistics[2 * index + 1];
        float along[2] = {};
        add_row<T, is_wide, has_bias>(sums, along, row, args);
        block_sum(along);
        along[0] = args.is_centred ? along[0] / (float)args.columns : 0.0f;
        along[1] /= (float)args.columns;
        write_row<T, is_wide>(row, along, begin, args);
    }
    float *to = args.scratch + blockIdx.x * (has_bias ? 2 : 1) * args.columns;
    for (int i = threadIdx.x; i < packets; i += blockDim.x) {
        int count = packet_elements<is_wide>(i * width, args.columns);
        for (int j = 0; j < count; j++) {
            to[i * width + j] = sums[j * packets + i];
            if (has_bias) {
                to[args.columns + i * width + j] = sums[(width + j) * packets + i];
            }
        }
    }
}

constexpr int shares = 8;    // a block adds LAUNCH_WARP columns; so many warps share its parts

// Adds the blocks' sums, [parts, kinds, columns], in an order that their number determines. The blocks of kind 0 write
// the gradient of the weight, those behind them that of the bias.
template <typename T>
__global__ void __launch_bounds__(LAUNCH_WARP *shares) sum_kernel(const struct norm_backward_args args, int64_t parts)
{
    __shared__ float sums[shares][LAUNCH_WARP];
    int              lane = threadIdx.x % LAUNCH_WARP, own_share = threadIdx.x / LAUNCH_WARP;
    int64_t          kinds = args.bias_gradient != NULL ? 2 : 1, groups = launch_groups(args.columns, LAUNCH_WARP);
    int64_t          kind = blockIdx.x / groups, column = blockIdx.x % groups * LAUNCH_WARP + lane;
    float            sum = 0;
    if (column < args.columns) {
        for (int64_t part = own_share; part < parts; part += shares) {
            sum += args.scratch[(part * kinds + kind) * args.columns + column];
        }
    }
    sums[own_share][lane] = sum;
    __syncthreads();
    if (own_share == 0 && column < args.columns) {
        T *to = (T *)(kind == 0 ? args.weight_gradient : args.bias_gradient) + column;
        sum   = args.accumulates ? widen(*to) : 0.0f;
        for (int share = 0; share < shares; share++) {
            sum += sums[share][lane];
        }
        narrow(to, sum);
    }
}
}    // namespace

int kernel_norm_backward(const struct norm_backward_args *args, const struct kernel_target *target)
{
    bool          has_bias = args->bias_gradient != NULL;
    int64_t       kinds    = has_bias ? 2 : 1;
    struct launch launch   = norm_backward_launch(args->rows, args->columns, kinds, target);
    int64_t       shared   = norm_backward_shared_bytes(args->columns, kinds);
    bool          is_wide =
        launch_is_wide(args->columns, addresses(args->gradient, args->x, args->residual, args->weight, args->out));
    int error = with_type(args->activation, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return with_flag(has_bias, [&](auto bias) {
                return enqueue(backward_kernel<decltype(type), wide.value, bias.value>, launch, shared, target, *args);
            });
        });
    });
    if (error != 0) {
        return error;
    }
    struct launch sum = {(uint32_t)(kinds * launch_groups(args->columns, LAUNCH_WARP)), LAUNCH_WARP * shares};
    return with_type(args->weight_gradient_type, [&](auto type) {
        return enqueue(sum_kernel<decltype(type)>, sum, 0, target, *args, (int64_t)launch.blocks);
    });
}
