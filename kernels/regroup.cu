// SPDX-License-Identifier: MIT
// Transposes the first two dimensions of [rows, parts, width] to [parts, rows, width]. folds_parts also reverses the
// rows in odd parts, folds_rows the parts in odd rows. One thread block handles one part of a row at a time.
#include "device.cuh"
#include "rope.h"

namespace
{
template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) regroup_kernel(const struct regroup_args args)
{
    for (int64_t item = blockIdx.x; item < args.rows * args.parts; item += gridDim.x) {
        int64_t  row = item / args.parts, part = item % args.parts;
        int64_t  to_row  = args.folds_parts && part % 2 == 1 ? args.rows - 1 - row : row;
        int64_t  to_part = args.folds_rows && row % 2 == 1 ? args.parts - 1 - part : part;
        const T *from    = (const T *)args.in + item * args.width;
        T       *to      = (T *)args.out + (to_part * args.rows + to_row) * args.width;
        for (int64_t at = (int64_t)threadIdx.x * width; at < args.width; at += (int64_t)blockDim.x * width) {
            int count = packet_elements<is_wide>(at, args.width);
            put<is_wide>(to + at, fetch<is_wide>(from + at, count), count);
        }
    }
}
}    // namespace

int kernel_regroup(const struct regroup_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_packets(args->rows * args->parts, args->width, target);
    bool          is_wide = launch_is_wide(args->width, addresses(args->in, args->out));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(regroup_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}
