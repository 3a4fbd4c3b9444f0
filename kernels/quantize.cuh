// SPDX-License-Identifier: MIT
// Quantizes a matrix x to FP8:
//
//   out = fp8(scale x), transposed = fp8(scale x)^T, scale = largest FP8 value / amax (MX: rounded down to 2^n)
//
// A scale belongs to the whole tensor or to a scaling block (1 x 128, 128 x 128, or MX: 1 x 32). A thread block handles
// a 128 x 128 tile of x at a time, and each of its 256 threads a patch of 8 x 8 elements. The transposed copy goes
// through shared memory, so that stores to it are contiguous. The template parameter Source loads x from memory, or
// computes it from other tensors: then a norm or an activation and its quantization are one kernel.
#pragma once

#include "codes.cuh"
#include "quantize.h"

// Each file that includes this header has its own copy of the kernels.
namespace
{
// The simplest source: x is in memory. Every source has these members:
//
//   fetch_row   loads the operands that `count` adjacent elements of a row depend on
//   compute     returns these elements, rounded to type T; elements beyond count are arbitrary
//   parts       number of matrices side by side in a row, such as d gate and d up, which are computed together
//   operands    packets (eight elements each) that fetch_row loads
//   together    rows that a thread loads before it computes, limited by registers
template <typename T> struct stored_source {
    const T             *in;
    static constexpr int parts = 1, operands = 1, together = width;

    template <bool is_wide>
    __device__ void fetch_row(packet<T> (&to)[1], int64_t row, int64_t column, int64_t pitch, int count) const
    {
        to[0] = fetch<is_wide>(in + row * pitch + column, count);
    }
    template <bool is_wide>
    __device__ void compute(packet<T> (&to)[1], const packet<T> (&from)[1], int64_t, int64_t, int) const
    {
        to[0] = from[0];
    }
};

// Computes the amax of each row of a thread's 8 x 8 patch.
template <typename T> __device__ inline void find_magnitudes(float (&magnitudes)[width], const packet<T> (&raw)[width])
{
#pragma unroll
    for (int i = 0; i < width; i++) {
        float values[width];
        unpack(values, raw[i]);
        magnitudes[i] = larger(0, values);
    }
}

// Computes the scale of a 128 x 128 block from its amax, and stores its inverse for both copies.
template <enum format format, typename T>
__device__ inline float scale_square(const packet<T> (&raw)[width], const struct quantize_args &args, const patch &its)
{
    float magnitudes[width];
    find_magnitudes(magnitudes, raw);
    float   scale     = fp8_scale(format, block_maximum(larger(0, magnitudes)));
    int64_t at        = scaling_inverse_at(SCALING_128X128, args.rows, args.columns, its.first_row, its.first_column);
    int64_t turned_at = scaling_inverse_at(SCALING_128X128, args.columns, args.rows, its.first_column, its.first_row);
    if (threadIdx.x == 0 && args.factor != NULL) {
        ((float *)args.factor)[at] = 1 / scale;
    }
    if (threadIdx.x == 0 && args.transposed_inverse_scale != NULL) {
        ((float *)args.transposed_inverse_scale)[turned_at] = 1 / scale;
    }
    return scale;
}

// has_parts: a row of x has several scales. sharing: number of adjacent threads of a tile row that share one scale.
template <enum scaling scaling> constexpr bool has_parts = scaling == SCALING_1X128 || scaling == SCALING_MX;
template <enum scaling scaling> constexpr int  sharing   = scaling == SCALING_MX ? SCALING_BLOCK / width : along;

// Computes the scale of a 1 x 128 or MX block from its amax. If `stores`, stores the inverse scale for a matrix [rows,
// columns]. MX scales are also stored for rows beyond the matrix, because their layout is padded to whole tiles; 1 x
// 128 scales are not.
template <enum format format, enum scaling scaling>
__device__ inline float scale_part(float magnitude, void *factors, int64_t rows, int64_t columns, int64_t row,
                                   int64_t column, bool stores)
{
    bool    is_stored = stores && factors != NULL && (scaling == SCALING_MX || row < rows);
    int64_t at        = scaling_inverse_at(scaling, rows, columns, row, column);
    if constexpr (scaling == SCALING_MX) {
        uint8_t factor = fp8_block_factor(format, magnitude);
        if (is_stored) {
            ((uint8_t *)factors)[at] = factor;
        }
        return fp8_block_scale(factor);
    }
    float scale = fp8_scale(format, magnitude);
    if (is_stored) {
        ((float *)factors)[at] = 1 / scale;
    }
    return scale;
}

// Computes the scale of each row of a thread's patch for the row-wise copy, and stores the inverse scales.
template <enum format format, enum scaling scaling, typename T>
__device__ inline void scale_rows(float (&scales)[width], const packet<T> (&raw)[width],
                                  const struct quantize_args &args, const patch &its)
{
    find_magnitudes(scales, raw);
#pragma unroll
    for (int i = 0; i < width; i++) {
#pragma unroll
        for (int distance = sharing<scaling> / 2; distance > 0; distance /= 2) {
            scales[i] = fmaxf(scales[i], __shfl_xor_sync(0xffffffffu, scales[i], distance));
        }
        scales[i] =
            scale_part<format, scaling>(scales[i], args.factor, args.rows, args.columns, its.first_row + its.row + i,
                                        its.first_column + its.column, its.column % (sharing<scaling> * width) == 0);
    }
}

// Computes the scale of each column of a thread's patch for the transposed copy, and stores the inverse scales.
template <enum format format, enum scaling scaling, typename T>
__device__ inline void scale_columns(float (&scales)[width], const packet<T> (&raw)[width],
                                     const struct quantize_args &args, const patch &its)
{
    constexpr int    parts = along / sharing<scaling>;
    __shared__ float maxima[along][side], shared_scales[parts][side];
    fill(scales, 0);
#pragma unroll
    for (int i = 0; i < width; i++) {
        float values[width];
        unpack(values, raw[i]);
#pragma unroll
        for (int j = 0; j < width; j++) {
            scales[j] = fmaxf(scales[j], fabsf(values[j]));
        }
    }
#pragma unroll
    for (int j = 0; j < width; j++) {
        maxima[its.row / width][its.column + j] = scales[j];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < parts * side; i += TILE_THREADS) {
        int   part = i / side, column = i % side;
        float largest = 0;
#pragma unroll
        for (int group = 0; group < sharing<scaling>; group++) {
            largest = fmaxf(largest, maxima[part * sharing<scaling> + group][column]);
        }
        shared_scales[part][column] =
            scale_part<format, scaling>(largest, args.transposed_inverse_scale, args.columns, args.rows,
                                        its.first_column + column, its.first_row + part * (side / parts), true);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < width; j++) {
        scales[j] = shared_scales[its.row / width / sharing<scaling>][its.column + j];
    }
}

// Blocks per SM for the launch bound: 3 limit a thread to 80 registers, 2 to 128.
template <typename Source, enum scaling scaling, bool is_wide> constexpr int resident = 2;
template <> constexpr int resident<stored_source<bf16>, SCALING_WHOLE, true>          = 3;
template <> constexpr int resident<stored_source<bf16>, SCALING_128X128, true>        = 3;

// Quantizes a tile and stores its row-wise and transposed copy. Each thread handles its patch of 8 x 8 elements.
// scales: with SCALING_WHOLE the caller sets it to the per-tensor scale, and *largest is raised to the amax.
template <enum format format, enum scaling scaling, bool is_wide, typename T>
__device__ inline void write_tile(turned_tile &turned, const packet<T> (&raw)[width], float (&scales)[width],
                                  float *largest, const struct quantize_args &args, const patch &its)
{
    uint2 codes[width];
    int   count = packet_elements<is_wide>(0, its.columns);
    if constexpr (scaling == SCALING_128X128) {
        fill(scales, scale_square<format>(raw, args, its));
    } else if constexpr (has_parts<scaling>) {
        scale_rows<format, scaling>(scales, raw, args, its);
    }
#pragma unroll
    for (int i = 0; i < width; i++) {
        float values[width];
        unpack(values, raw[i]);
        if constexpr (scaling == SCALING_WHOLE) {
            *largest = larger(*largest, values);
        }
        for (int j = 0; j < width; j++) {
            values[j] *= scales[i];
        }
        codes[i] = encode<format>(values);
        if (args.out != NULL && i < its.rows) {
            put_codes<is_wide>(args.out + its.at + i * args.columns, codes[i], count);
        }
    }
    if (args.transposed == NULL) {
        return;
    }
    if constexpr (has_parts<scaling>) {    // scaling blocks of the transposed copy run along columns of x
        float of_columns[width];
        scale_columns<format, scaling>(of_columns, raw, args, its);
#pragma unroll
        for (int i = 0; i < width; i++) {
            float values[width];
            unpack(values, raw[i]);
            for (int j = 0; j < width; j++) {
                values[j] *= of_columns[j];
            }
            codes[i] = encode<format>(values);
        }
    }
    __syncthreads();    // all threads have read the previous tile
    turned.put(its.row, its.column, codes);
    __syncthreads();
    turned.store<is_wide>(args.transposed, its.first_row, its.first_column, args.rows, args.columns);
}

// Keeps the first count elements of a packet; the others become zero.
template <typename T> __device__ inline packet<T> front(const packet<T> &from, int count)
{
    float values[width];
    unpack(values, from);
#pragma unroll
    for (int i = 0; i < width; i++) {
        values[i] = i < count ? values[i] : 0.0f;
    }
    return pack<T>(values);
}

// Loads a thread's patch; elements outside the matrix become zero. Whole packets of several rows are loaded together.
// Rows below the matrix first repeat its last row, so that no branch separates the loads, and become zero at the end.
template <bool is_wide, typename T, typename Source>
__device__ inline void read_patch(packet<T> (&raw)[Source::parts][width], const Source &source, const patch &its,
                                  int64_t pitch)
{
    constexpr int together  = is_wide ? Source::together : 1;
    int           first_row = its.first_row + its.row, column = its.first_column + its.column;
    int           rows = min(its.rows, width), count = packet_elements<is_wide>(0, its.columns);
#pragma unroll
    for (int first = 0; first < width && rows > 0; first += together) {
        packet<T> operands[together][Source::operands], made[Source::parts];
#pragma unroll
        for (int i = 0; i < together; i++) {
            source.template fetch_row<is_wide>(operands[i], first_row + min(first + i, rows - 1), column, pitch, count);
        }
#pragma unroll
        for (int i = 0; i < together; i++) {
            source.template compute<is_wide>(made, operands[i], first_row + min(first + i, rows - 1), column, count);
#pragma unroll
            for (int part = 0; part < Source::parts; part++) {
                raw[part][first + i] = is_wide ? made[part] : front(made[part], count);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < width * Source::parts && rows < width; i++) {
        packet<T> &row = raw[i / width][i % width];
        row            = i % width < rows ? row : packet<T>{};
    }
}

// Processes the tiles from the last to the first, because the previous kernel, such as the amax pass, left the end of
// the matrix in the L2 cache.
template <typename T, typename Source, enum format format, enum scaling scaling, bool is_wide>
__global__ void __launch_bounds__(TILE_THREADS, resident<Source, scaling, is_wide>)
    quantize_kernel(const struct quantize_args args, const Source source)
{
    __shared__ turned_tile turned;
    constexpr int          parts   = Source::parts;
    int64_t                columns = args.columns / parts;    // of each part

    float largest = 0, scales[width];
    if constexpr (scaling == SCALING_WHOLE) {
        float scale = args.scale != NULL ? *args.scale : fp8_scale(format, *args.scratch);
        if (blockIdx.x == 0 && threadIdx.x == 0 && args.factor != NULL) {
            *(float *)args.factor = 1 / scale;
        }
        fill(scales, scale);
    }
    for (int tile = (int)tiles_of(args.rows, columns) - 1 - (int)blockIdx.x; tile >= 0; tile -= (int)gridDim.x) {
        patch     its(tile, args.rows, columns, args.columns);
        packet<T> raw[parts][width];
        read_patch<is_wide>(raw, source, its, args.columns);
#pragma unroll
        for (int part = 0; part < parts; part++) {
            write_tile<format, scaling, is_wide>(turned, raw[part], scales, &largest, args, its);
            its.first_column += (int)columns;
            its.at += columns;
        }
    }
    if (scaling == SCALING_WHOLE && args.magnitude != NULL) {
        raise(args.magnitude, largest);
    }
}

template <typename Body> int with_format(enum format format, Body body)
{
    return with_value<FORMAT_E4M3, FORMAT_E5M2>(format, body);
}

inline bool copies_are_wide(const struct quantize_args *args)
{
    return launch_is_wide(args->columns, addresses(args->out, args->transposed)) &&
           (args->transposed == NULL || args->rows % wide == 0);
}

// Enqueues the quantization of a matrix. is_wide: all packets that the source loads are whole and aligned. Sources with
// several parts require this.
template <enum scaling scaling, typename T, typename Source>
int enqueue_quantize(const Source &source, const struct quantize_args *args, bool is_wide,
                     const struct kernel_target *target)
{
    if (args->rows > INT32_MAX || args->columns > INT32_MAX) {    // struct patch has int indices
        return cudaErrorInvalidValue;
    }
    auto enqueue_kernel = [&](void (*kernel)(struct quantize_args, Source)) {
        struct launch launch = launch_tiles(kernel, args->rows, args->columns / Source::parts, target);
        return enqueue(kernel, launch, 0, target, *args, source);
    };
    return with_format(args->format, [&](auto format) {
        if constexpr (Source::parts > 1) {
            return enqueue_kernel(quantize_kernel<T, Source, format.value, scaling, true>);
        } else {
            return with_flag(is_wide && copies_are_wide(args), [&](auto wide) {
                return enqueue_kernel(quantize_kernel<T, Source, format.value, scaling, wide.value>);
            });
        }
    });
}

// Enqueues the quantization of a matrix that the source computes in bf16.
template <typename Source>
int enqueue_fused(const Source &source, const struct quantize_args *args, bool is_wide,
                  const struct kernel_target *target)
{
    if (args->type != FORMAT_BF16 || args->scaling == SCALING_128X128) {
        return cudaErrorInvalidValue;
    }
    return args->scaling == SCALING_1X128 ? enqueue_quantize<SCALING_1X128, bf16>(source, args, is_wide, target)
           : args->scaling == SCALING_MX  ? enqueue_quantize<SCALING_MX, bf16>(source, args, is_wide, target)
                                          : enqueue_quantize<SCALING_WHOLE, bf16>(source, args, is_wide, target);
}
}    // namespace
