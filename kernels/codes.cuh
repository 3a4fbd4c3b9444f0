// SPDX-License-Identifier: MIT
// Defines code that the FP8 kernels share: amax reduction, conversion to FP8, and 128 x 128 tiles that are transposed
// in shared memory.
#pragma once

#include "gswbench/fp8.h"

#include "device.cuh"

constexpr int side  = SCALING_SIDE;
constexpr int wide  = sizeof(uint4);    // FP8 codes per 16-byte store
constexpr int along = side / width;     // threads along a side of the tile, eight elements each
static_assert(width == 8, "a row of a thread's codes is two words");

// A thread block handles one tile at a time, and each of its threads width x width (8 x 8) elements of it.
enum { TILE_THREADS = along * along };

GSWBENCH_INLINE int64_t tiles_of(int64_t rows, int64_t columns)
{
    return launch_groups(rows, side) * launch_groups(columns, side);
}

// Returns the launch configuration of a kernel in which a thread block handles one tile at a time.
template <typename... Parameters>
static struct launch launch_tiles(void (*kernel)(Parameters...), int64_t rows, int64_t columns,
                                  const struct kernel_target *target)
{
    int resident = resident_blocks(kernel, TILE_THREADS, 0);
    return {launch_resident_blocks(tiles_of(rows, columns), resident, target->multiprocessors), TILE_THREADS};
}

static __device__ inline float larger(float largest, const float (&values)[width], int count = width)
{
#pragma unroll
    for (int i = 0; i < width; i++) {
        largest = i < count ? fmaxf(largest, fabsf(values[i])) : largest;    // fmaxf ignores NaN
    }
    return largest;
}

// Raises *magnitude to the maximum of `largest` over the block's threads, if that is larger. The atomic compares bits,
// which is correct because floats that are not negative sort like their bits. All threads of the block must call it.
static __device__ inline void raise(float *magnitude, float largest)
{
    largest = block_maximum(largest);
    if (threadIdx.x == 0) {
        atomicMax(reinterpret_cast<unsigned *>(magnitude), __float_as_uint(largest));
    }
}

// Raises *magnitude like raise, to the amax of values after they are rounded to T. Rounding is monotonic, so the
// rounded maximum is the maximum of the rounded values.
template <typename T> static __device__ inline void raise_stored(float *magnitude, float largest)
{
    T stored;
    low_precision(&stored, largest);
    raise(magnitude, widen(stored));
}

// Sets the amax to 0 before a kernel raises it.
static inline int clear_magnitude(float *magnitude, const struct kernel_target *target)
{
    return magnitude != NULL ? (int)cudaMemsetAsync(magnitude, 0, sizeof(*magnitude), target->stream) : 0;
}

// Converts two values; the first is in the low byte. The instruction rounds and saturates like fp8_from_float, but may
// change the sign of NaN.
template <enum format format> static __device__ inline uint32_t encode_pair(float first, float second)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    if constexpr (format == FORMAT_E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    }
    return pair;
#else
    return fp8_from_float(format, first) | (uint32_t)fp8_from_float(format, second) << 8;
#endif
}

template <enum format format> static __device__ inline uint2 encode(const float (&scaled)[width])
{
    uint32_t pairs[width / 2];
    each<width / 2>([&](int i) { pairs[i] = encode_pair<format>(scaled[2 * i], scaled[2 * i + 1]); });
    return make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
}

static __device__ inline void fill(float (&values)[width], float value)
{
    each([&](int i) { values[i] = value; });
}

// Stores the first `count` FP8 codes of `words`, or all of them if is_wide.
template <bool is_wide, typename Words>
static __device__ inline void put_codes(uint8_t *to, const Words &words, int64_t count)
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

// Loads the first `count` of 8 FP8 codes, or all of them if is_wide; the others become zero.
template <bool is_wide> static __device__ inline uint2 fetch_codes(const uint8_t *from, int64_t count)
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

// Transposes a 4 x 4 matrix of bytes.
static __device__ inline void turn(uint32_t (&words)[4])
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

// FP8 tile in shared memory, stored column by column. The 16-byte packets of a column are swizzled by the column index,
// so that neither writes nor reads have bank conflicts.
struct turned_tile {
    uint4 packets[side][side / wide];

    __device__ uint4 &packet_of(int column, int row)
    {
        return packets[column][(row / wide) ^ (column / width % (side / wide))];
    }

    // Stores an 8 x 8 patch of codes (codes[i]: row i of the patch) at this row and column of the tile.
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

    // Stores the transposed tile in the matrix `to` [columns, rows]. first_row and first_column: position of the tile
    // in the input matrix [rows, columns]. All threads of the block must call it.
    template <bool is_wide>
    __device__ void store(uint8_t *to, int first_row, int first_column, int64_t rows, int64_t columns)
    {
        int thread = (int)threadIdx.x;
        asm volatile("" : "+r"(thread));    // forces recomputation of indices, which saves registers
#pragma unroll
        for (int pass = 0; pass < side * (side / wide) / TILE_THREADS; pass++) {
            int i      = thread + pass * TILE_THREADS;
            int column = i / (side / wide), row = i % (side / wide) * wide;
            int left = (int)rows - first_row - row;
            if (first_column + column < columns && left > 0) {
                put_codes<is_wide>(to + (first_column + column) * rows + first_row + row, packet_of(column, row), left);
            }
        }
    }
};

// The patch of 8 x 8 elements of a tile that one thread handles.
struct patch {
    int     row, column;                // position of the patch in the tile
    int     first_row, first_column;    // position of the tile in the matrix
    int     rows, columns;              // from the patch's first element to the end of the matrix; any size, even <= 0
    int64_t at;                         // index of the patch's first element in the matrix

    // pitch: elements from one row to the next; more than total_columns if tiles cover only the start of each row.
    __device__ patch(int64_t tile, int64_t total_rows, int64_t total_columns, int64_t pitch)
    {
        int across   = (int)launch_groups(total_columns, side);
        row          = (int)threadIdx.x / along * width;
        column       = (int)threadIdx.x % along * width;
        first_row    = (int)tile / across * side;
        first_column = (int)tile % across * side;
        columns      = (int)total_columns - first_column - column;
        rows         = columns > 0 ? (int)total_rows - first_row - row : 0;
        at           = (int64_t)(first_row + row) * pitch + first_column + column;
    }
};
