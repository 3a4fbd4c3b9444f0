// SPDX-License-Identifier: MIT
// Computes column sums of a matrix (the gradient of a bias), and copies of a bias to each row of a matrix. For sums,
// each thread block adds every gridDim-th row, and a thread eight columns. Then the partial sums of the blocks are
// added in order.
#include "elements.h"

#include "device.cuh"
#include "sum_parts.cuh"

namespace
{
constexpr int rows_of_block = 16;    // minimum, so that the partial sums are much smaller than the matrix

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) column_sum_kernel(const struct column_sum_args args)
{
    for (int64_t at = threadIdx.x * width; at < args.columns; at += blockDim.x * width) {
        int   count       = packet_elements<is_wide>(at, args.columns);
        float sums[width] = {};
#pragma unroll 4
        for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
            float values[width];
            load<is_wide>(values, (const T *)args.in + row * args.columns + at, count);
            each([&](int i) { sums[i] += values[i]; });
        }
        store<is_wide>(args.scratch + blockIdx.x * args.columns + at, sums, count);
    }
}

__global__ void __launch_bounds__(LAUNCH_THREADS) equal_rows_kernel(const struct equal_rows_args args)
{
    for (int64_t i = own_thread(); i < args.rows * args.columns; i += all_threads()) {
        float value = widen(((const bf16 *)args.row)[i % args.columns]);
        args.out[i] = args.accumulates ? args.out[i] + value : value;
    }
}

struct launch launch_of(int64_t rows, int64_t columns, const struct kernel_target *target)
{
    uint32_t threads = launch_threads(launch_groups(columns, width), LAUNCH_THREADS);
    return {launch_blocks(launch_groups(rows, rows_of_block), threads, target->multiprocessors), threads};
}
}    // namespace

int64_t kernel_column_sum_scratch_bytes(int64_t rows, int64_t columns, const struct kernel_target *target)
{
    return launch_of(rows, columns, target).blocks * columns * (int64_t)sizeof(float);
}

int kernel_column_sum(const struct column_sum_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_of(args->rows, args->columns, target);
    int           error =
        with_packets(args->in_type, launch_is_wide(args->columns, addresses(args->in)), [&](auto type, auto wide) {
            return enqueue(column_sum_kernel<decltype(type), wide.value>, launch, 0, target, *args);
        });
    struct part_sums_args sums = {args->scratch, {args->out, NULL}, launch.blocks, 1, args->columns, args->accumulates};
    return error != 0 ? error : enqueue_sum(sums, args->out_type, target);
}

int kernel_equal_rows(const struct equal_rows_args *args, const struct kernel_target *target)
{
    return enqueue(equal_rows_kernel, launch_items(args->rows * args->columns, target->multiprocessors), 0, target,
                   *args);
}
