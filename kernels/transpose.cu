// SPDX-License-Identifier: MIT
// Transposes an FP8 matrix through shared memory. A thread block handles one 128 x 128 tile at a time.
#include "codes.cuh"
#include "quantize.h"

namespace
{
template <bool is_wide>
__global__ void __launch_bounds__(TILE_THREADS) transpose_kernel(const struct transpose_args args)
{
    __shared__ turned_tile turned;

    for (int64_t tile = blockIdx.x; tile < tiles_of(args.rows, args.columns); tile += gridDim.x) {
        patch its(tile, args.rows, args.columns, args.columns);
        uint2 codes[width];
#pragma unroll
        for (int i = 0; i < width; i++) {
            codes[i] = i < its.rows ? fetch_codes<is_wide>(args.in + its.at + i * args.columns, its.columns)
                                    : make_uint2(0, 0);
        }
        __syncthreads();    // all threads have read the previous tile
        turned.put(its.row, its.column, codes);
        __syncthreads();
        turned.store<is_wide>(args.out, its.first_row, its.first_column, args.rows, args.columns);
    }
}
}    // namespace

int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target)
{
    bool is_wide = launch_is_wide(args->columns, addresses(args->in, args->out)) && args->rows % wide == 0;
    return with_flag(is_wide, [&](auto is_wide) {
        void (*kernel)(struct transpose_args) = transpose_kernel<is_wide.value>;
        return enqueue(kernel, launch_tiles(kernel, args->rows, args->columns, target), 0, target, *args);
    });
}
