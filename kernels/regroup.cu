// SPDX-License-Identifier: MIT
// Transposes the first two dimensions of [rows, parts, width] to [parts, rows, width]. regroup_place (op_shape.h)
// computes where each part of a row moves. One thread block handles one part of a row at a time.
#include "device.cuh"
#include "rope.h"

namespace
{
template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) regroup_kernel(const struct regroup_args args, int64_t elements)
{
    int64_t parts = args.shape.parts;
    for (int64_t item = blockIdx.x; item < args.shape.rows * parts; item += gridDim.x) {
        const T *from = (const T *)args.in + item * elements;
        T       *to   = (T *)args.out + regroup_place(&args.shape, item / parts, item % parts) * elements;
        for (int64_t at = (int64_t)threadIdx.x * width; at < elements; at += (int64_t)blockDim.x * width) {
            int count = packet_elements<is_wide>(at, elements);
            put<is_wide>(to + at, fetch<is_wide>(from + at, count), count);
        }
    }
}
}    // namespace

int kernel_regroup(const struct regroup_args *args, const struct kernel_target *target)
{
    int64_t       elements = args->shape.columns / args->shape.parts;    // of a part of a row
    struct launch launch   = launch_packets(args->shape.rows * args->shape.parts, elements, target);
    bool          is_wide  = launch_is_wide(elements, addresses(args->in, args->out));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue(regroup_kernel<decltype(type), wide.value>, launch, 0, target, *args, elements);
    });
}
