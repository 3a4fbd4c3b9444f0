// SPDX-License-Identifier: MIT
// Quantizes a matrix in memory to FP8: out = fp8(scale x). If one scale depends on all values, a first pass computes
// the amax. If the scale is given and no transposed copy is needed, the matrix is handled as a flat array. This matters
// for master weights: they are one long row, which would fill only 1 of the 128 rows of a tile.
#include "quantize.cuh"
#include "quantize.h"
#include "spread.cuh"

namespace
{
// Scalings that kernel_quantize supports. NVFP4 has its own kernel (quantize_nv.cu), and row scaling is not available
// on devices.
template <typename Body> int with_scaling(enum scaling scaling, Body body)
{
    return with_value<SCALING_WHOLE, SCALING_1X128, SCALING_128X128, SCALING_MX>(scaling, body);
}

template <bool is_wide> __device__ inline void store_codes(uint8_t *out, const uint2 &codes, const spread &its)
{
    int64_t first = its.element(0), second = its.element(spread::RUN);
    if (is_wide && its.is_whole()) {
        put_codes<true>(out + first, codes.x, spread::RUN);
        put_codes<true>(out + second, codes.y, spread::RUN);
    } else {
        put_codes<false>(out + first, codes.x, max((int64_t)0, its.total - first));
        put_codes<false>(out + second, codes.y, max((int64_t)0, its.total - second));
    }
}

template <typename T, enum format format, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) flat_kernel(const struct quantize_args args)
{
    float scale = *args.scale, largest = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0 && args.factor != NULL) {
        *(float *)args.factor = 1 / scale;
    }
#pragma unroll 2
    for (spread its(args.rows * args.columns); its.is_here(); its.advance()) {
        float values[width];
        load<is_wide>(values, (const T *)args.in, its);
        largest = larger(largest, values);
        each([&](int i) { values[i] *= scale; });
        store_codes<is_wide>(args.out, encode<format>(values), its);
    }
    if (args.magnitude != NULL) {
        raise(args.magnitude, largest);
    }
}

int enqueue_flat(const struct quantize_args *args, const struct kernel_target *target)
{
    int64_t       elements = args->rows * args->columns;
    struct launch launch   = launch_items(launch_groups(elements, width), target->multiprocessors);
    bool          is_wide  = launch_is_wide(width, addresses(args->in)) && addresses(args->out) % sizeof(uint32_t) == 0;
    return with_type(args->type, [&](auto type) {
        return with_format(args->format, [&](auto format) {
            return with_flag(is_wide, [&](auto wide) {
                return enqueue(flat_kernel<decltype(type), format.value, wide.value>, launch, 0, target, *args);
            });
        });
    });
}

int find_magnitude(const struct quantize_args *args, const struct kernel_target *target)
{
    struct magnitude_args magnitude = {args->in, args->scratch, args->rows * args->columns, args->type};
    int                   error     = clear_magnitude(args->scratch, target);
    return error != 0 ? error : kernel_magnitude(&magnitude, target);
}
}    // namespace

int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target)
{
    if (args->scaling == SCALING_WHOLE && args->scale != NULL && args->transposed == NULL) {
        return enqueue_flat(args, target);
    }
    bool needs_pass = args->scaling == SCALING_WHOLE && args->scale == NULL && !args->has_magnitude;
    int  error      = needs_pass ? find_magnitude(args, target) : 0;
    return error != 0 ? error : with_type(args->type, [&](auto type) {
        return with_scaling(args->scaling, [&](auto scaling) {
            using T = decltype(type);
            return enqueue_quantize<scaling.value, T>(stored_source<T>{(const T *)args->in}, args,
                                                      launch_is_wide(args->columns, addresses(args->in)), target);
        });
    });
}
