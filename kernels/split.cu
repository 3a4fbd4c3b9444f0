// SPDX-License-Identifier: MIT
// Splits the columns of a matrix in two matrices, or joins two. One thread block handles one row at a time.
#include "device.cuh"
#include "rope.h"

namespace
{
template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) split_kernel(const struct split_args args)
{
    int64_t of_first = launch_groups(args.first_columns, width), others = args.columns - args.first_columns;
    int64_t items = of_first + launch_groups(others, width);
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        T *whole = (T *)args.whole + row * args.columns;
        T *first = (T *)args.first + row * args.first_columns, *rest = (T *)args.rest + row * others;
        for (int64_t i = threadIdx.x; i < items; i += blockDim.x) {
            bool    is_first = i < of_first;
            int64_t at       = (is_first ? i : i - of_first) * width;
            int     count    = packet_elements<is_wide>(at, is_first ? args.first_columns : others);
            T      *one = whole + (is_first ? 0 : args.first_columns) + at, *other = (is_first ? first : rest) + at;
            put<is_wide>(args.joins ? one : other, fetch<is_wide>(args.joins ? other : one, count), count);
        }
    }
}
}    // namespace

int kernel_split(const struct split_args *args, const struct kernel_target *target)
{
    struct launch launch =
        launch_rows(args->rows, launch_groups(args->columns, width) + 1, LAUNCH_THREADS, target->multiprocessors);
    bool is_wide = launch_is_wide(args->columns, addresses(args->whole, args->first, args->rest)) &&
                   launch_is_wide(args->first_columns, 0);
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(split_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}
