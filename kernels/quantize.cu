// SPDX-License-Identifier: MIT
// A tile at a time: rows leave as they came, columns after they have been turned in shared memory. Where the scale
// follows from the values, a pass before finds their largest magnitude.
#include "gswbench/fp8.h"

#include "device.cuh"
#include "quantize.h"

namespace
{
constexpr int width = LAUNCH_WIDTH, side = QUANTIZE_TILE;
constexpr int wide  = sizeof(uint4);    // codes that a thread stores at a time
constexpr int along = side / width;     // threads along a side of the tile
static_assert(width == 8, "a row of a thread's codes is two words");

__host__ __device__ inline int64_t tiles_of(int64_t rows, int64_t columns)
{
    return launch_groups(rows, side) * launch_groups(columns, side);
}

__device__ inline float larger(float largest, const float (&values)[width])
{
#pragma unroll
    for (int i = 0; i < width; i++) {
        largest = fmaxf(largest, fabsf(values[i]));    // NaN is no magnitude
    }
    return largest;
}

// All threads of the block call. Magnitudes compare as their bits do.
__device__ inline void raise(float *magnitude, float largest)
{
    largest = block_maximum(largest);
    if (threadIdx.x == 0) {
        atomicMax(reinterpret_cast<unsigned *>(magnitude), __float_as_uint(largest));
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) magnitude_kernel(const struct magnitude_args args)
{
    int64_t step    = (int64_t)gridDim.x * blockDim.x * width;
    float   largest = 0;
#pragma unroll 4
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * width; at < args.elements; at += step) {
        float values[width];
        load<is_wide>(values, (const T *)args.in + at, packet_elements<false>(at, args.elements));
        largest = larger(largest, values);
    }
    raise(args.magnitude, largest);
}

// Two codes, the first in the low byte. The instruction rounds and saturates as fp8_from_float does; a NaN may have
// another sign.
template <enum dtype format> __device__ inline uint32_t encode_pair(float first, float second)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    if constexpr (format == DTYPE_E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    }
    return pair;
#else
    return fp8_from_float(format, first) | (uint32_t)fp8_from_float(format, second) << 8;
#endif
}

template <enum dtype format> __device__ inline uint2 encode(const float (&values)[width], float scale)
{
    uint32_t pairs[width / 2];
#pragma unroll
    for (int i = 0; i < width / 2; i++) {
        pairs[i] = encode_pair<format>(values[2 * i] * scale, values[2 * i + 1] * scale);
    }
    return make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
}

// The first count codes of so many words.
template <bool is_wide, typename Words> __device__ inline void put_codes(uint8_t *to, const Words &words, int64_t count)
{
    if (is_wide) {
        *reinterpret_cast<Words *>(to) = words;
        return;
    }
    const uint8_t *codes = reinterpret_cast<const uint8_t *>(&words);
#pragma unroll
    for (int i = 0; i < (int)sizeof(Words); i++) {
        if (i < count) {
            to[i] = codes[i];
        }
    }
}

// So many codes at most, and zeros.
template <bool is_wide> __device__ inline uint2 fetch_codes(const uint8_t *from, int64_t count)
{
    if (is_wide) {
        return *reinterpret_cast<const uint2 *>(from);
    }
    uint32_t words[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < width; i++) {
        words[i / 4] |= (i < count ? (uint32_t)from[i] : 0u) << 8 * (i % 4);
    }
    return make_uint2(words[0], words[1]);
}

// Four words of four bytes, turned: word i receives the bytes i of all.
__device__ inline void turn(uint32_t (&words)[4])
{
    uint32_t front[2], back[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        front[i] = __byte_perm(words[2 * i], words[2 * i + 1], 0x5140);
        back[i]  = __byte_perm(words[2 * i], words[2 * i + 1], 0x7362);
    }
    words[0] = __byte_perm(front[0], front[1], 0x5410);
    words[1] = __byte_perm(front[0], front[1], 0x7632);
    words[2] = __byte_perm(back[0], back[1], 0x5410);
    words[3] = __byte_perm(back[0], back[1], 0x7632);
}

// The codes of a tile, column by column. Which of a column's packets of codes lies where depends on the column, so that
// neither those who write nor those who read meet in one bank.
struct turned_tile {
    uint4 packets[side][side / wide];

    __device__ uint4 &packet_of(int column, int row)
    {
        return packets[column][(row / wide) ^ (column / width % (side / wide))];
    }

    // [width] rows of codes from that row and column on.
    __device__ void put(int row, int column, const uint2 (&codes)[width])
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t upper[4], lower[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                upper[i] = half == 0 ? codes[i].x : codes[i].y;
                lower[i] = half == 0 ? codes[i + 4].x : codes[i + 4].y;
            }
            turn(upper);
            turn(lower);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint2 *packet           = reinterpret_cast<uint2 *>(&packet_of(column + 4 * half + i, row));
                packet[row / width % 2] = make_uint2(upper[i], lower[i]);
            }
        }
    }

    // All threads of the block take turns; [columns, rows] receives the tile whose first row and column these are.
    template <bool is_wide>
    __device__ void store(uint8_t *to, int64_t first_row, int64_t first_column, int64_t rows, int64_t columns)
    {
        for (int i = (int)threadIdx.x; i < side * (side / wide); i += QUANTIZE_THREADS) {
            int     column = i / (side / wide), row = i % (side / wide) * wide;
            int64_t left = rows - first_row - row;
            if (first_column + column < columns && left > 0) {
                put_codes<is_wide>(to + (first_column + column) * rows + first_row + row, packet_of(column, row), left);
            }
        }
    }
};

// The part of a tile that a thread takes.
struct patch {
    int     row, column;                // in the tile
    int64_t first_row, first_column;    // of the tile
    int64_t at;                         // its first element in a matrix of so many columns
    int64_t rows, columns;              // that the matrix has there; may be more, or less than one

    __device__ patch(int64_t tile, int64_t total_rows, int64_t total_columns)
    {
        int64_t across = launch_groups(total_columns, side);
        row            = (int)threadIdx.x / along * width;
        column         = (int)threadIdx.x % along * width;
        first_row      = tile / across * side;
        first_column   = tile % across * side;
        at             = (first_row + row) * total_columns + first_column + column;
        columns        = total_columns - first_column - column;
        rows           = columns > 0 ? total_rows - first_row - row : 0;
    }
};

// Tiles in falling order: the pass before has left the end of the matrix in the cache.
template <typename T, enum dtype format, bool is_wide>
__global__ void __launch_bounds__(QUANTIZE_THREADS) quantize_kernel(const struct quantize_args args)
{
    __shared__ turned_tile turned;

    float scale = args.scale != NULL ? *args.scale : fp8_scale(format, *args.scratch), largest = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0 && args.factor != NULL) {
        *args.factor = 1 / scale;
    }
    for (int64_t tile = tiles_of(args.rows, args.columns) - 1 - blockIdx.x; tile >= 0; tile -= gridDim.x) {
        patch     its(tile, args.rows, args.columns);
        packet<T> raw[width];
        uint2     codes[width];
        int       count = packet_elements<is_wide>(0, its.columns);
#pragma unroll
        for (int i = 0; i < width; i++) {
            raw[i] = i < its.rows ? fetch<is_wide>((const T *)args.in + its.at + i * args.columns, count) : packet<T>{};
        }
#pragma unroll
        for (int i = 0; i < width; i++) {
            float values[width];
            unpack(values, raw[i]);
            largest  = larger(largest, values);
            codes[i] = encode<format>(values, scale);
            if (args.out != NULL && i < its.rows) {
                put_codes<is_wide>(args.out + its.at + i * args.columns, codes[i], count);
            }
        }
        if (args.transposed != NULL) {
            __syncthreads();    // the tile before has been read
            turned.put(its.row, its.column, codes);
            __syncthreads();
            turned.store<is_wide>(args.transposed, its.first_row, its.first_column, args.rows, args.columns);
        }
    }
    if (args.magnitude != NULL) {
        raise(args.magnitude, largest);
    }
}

template <bool is_wide>
__global__ void __launch_bounds__(QUANTIZE_THREADS) transpose_kernel(const struct transpose_args args)
{
    __shared__ turned_tile turned;

    for (int64_t tile = blockIdx.x; tile < tiles_of(args.rows, args.columns); tile += gridDim.x) {
        patch its(tile, args.rows, args.columns);
        uint2 codes[width];
#pragma unroll
        for (int i = 0; i < width; i++) {
            codes[i] = i < its.rows ? fetch_codes<is_wide>(args.in + its.at + i * args.columns, its.columns)
                                    : make_uint2(0, 0);
        }
        __syncthreads();    // the tile before has been read
        turned.put(its.row, its.column, codes);
        __syncthreads();
        turned.store<is_wide>(args.out, its.first_row, its.first_column, args.rows, args.columns);
    }
}

// A block a slot. From the end of its history, so that what moves on has been read by whoever overwrites it.
__global__ void __launch_bounds__(LAUNCH_THREADS) rescale_kernel(const struct rescale_args args)
{
    for (int64_t slot = blockIdx.x; slot < args.slots; slot += gridDim.x) {
        float largest = args.magnitude[slot];
        if (args.history != NULL) {
            float  *row = args.history + slot * args.length;
            int64_t end = launch_groups(args.length, blockDim.x) * blockDim.x;
            for (int64_t at = end - blockDim.x + threadIdx.x; at >= 0; at -= blockDim.x) {
                float value = at == 0 ? args.magnitude[slot] : at < args.length ? row[at - 1] : 0;
                largest     = fmaxf(largest, value);
                __syncthreads();
                if (at < args.length) {
                    row[at] = value;
                }
            }
        }
        largest = block_maximum(largest);
        if (threadIdx.x == 0) {
            float scale          = fp8_rescale(args.scale[slot], args.target, largest);
            args.scale[slot]     = scale;
            args.factor[slot]    = 1 / scale;
            args.magnitude[slot] = 0;
        }
    }
}

template <enum dtype chosen> struct format_constant {
    static constexpr enum dtype value = chosen;
};

template <typename Body> int with_format(enum dtype format, Body body)
{
    switch (format) {
    case DTYPE_E4M3:
        return body(format_constant<DTYPE_E4M3>());
    case DTYPE_E5M2:
        return body(format_constant<DTYPE_E5M2>());
    default:
        return cudaErrorInvalidValue;
    }
}

struct launch launch_tiles(int64_t rows, int64_t columns, const struct kernel_target *target)
{
    return {launch_blocks(tiles_of(rows, columns), QUANTIZE_THREADS, target->multiprocessors), QUANTIZE_THREADS};
}

int find_magnitude(const struct quantize_args *args, const struct kernel_target *target)
{
    struct magnitude_args magnitude = {args->in, args->scratch, args->rows * args->columns, args->type};
    int                   error     = cudaMemsetAsync(args->scratch, 0, sizeof(float), target->stream);
    return error != 0 ? error : kernel_magnitude(&magnitude, target);
}
}    // namespace

int kernel_quantize(const struct quantize_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_tiles(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->in, args->out, args->transposed)) &&
                   (args->transposed == NULL || args->rows % wide == 0);
    int error = args->scale == NULL ? find_magnitude(args, target) : 0;
    return error != 0 ? error : with_type(args->type, [&](auto type) {
        return with_format(args->format, [&](auto format) {
            return with_flag(is_wide, [&](auto is_wide) {
                return enqueue(quantize_kernel<decltype(type), format.value, is_wide.value>, launch, 0, target, *args);
            });
        });
    });
}

int kernel_magnitude(const struct magnitude_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_items(launch_groups(args->elements, width), target->multiprocessors);
    return with_type(args->type, [&](auto type) {
        return with_flag(launch_is_wide(width, addresses(args->in)), [&](auto is_wide) {
            return enqueue(magnitude_kernel<decltype(type), is_wide.value>, launch, 0, target, *args);
        });
    });
}

int kernel_transpose(const struct transpose_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_tiles(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->in, args->out)) && args->rows % wide == 0;
    return with_flag(is_wide,
                     [&](auto is_wide) { return enqueue(transpose_kernel<is_wide.value>, launch, 0, target, *args); });
}

int kernel_rescale(const struct rescale_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_rows(args->slots, args->length, LAUNCH_THREADS, target->multiprocessors);
    return enqueue(rescale_kernel, launch, 0, target, *args);
}
