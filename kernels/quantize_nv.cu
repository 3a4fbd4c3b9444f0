// SPDX-License-Identifier: MIT
// Quantizes a matrix to NVFP4, row-wise and as a transposed copy:
//
//   code = fp4(x block_scale), inverse scale of a block = e4m3(amax of the block * tensor_scale / 6)
//   block_scale = tensor_scale / inverse scale of the block
//
// A block is 1 x 16 elements, or 16 x 16 with SCALING_NV_SQUARE. A thread block handles a 64 x 64 tile at a time. The
// first half of its threads quantizes the rows of the tile, the second half its columns. Memory-bound: a first pass
// reads the matrix and finds the amax of each copy, which determines its tensor_scale. A second pass reads the matrix
// again, and writes 9/16 bytes per element and copy.
#include "gswbench/fp4.h"

#include "codes.cuh"
#include "quantize.h"

namespace
{
constexpr int SIDE = 64, BLOCK = SCALING_NV_BLOCK, THREADS = 2 * SIDE;

// Rounds two values to FP4 codes in a byte. Blackwell has an instruction for this, which rounds like fp4_from_float.
__device__ inline uint32_t nearest_pair(float first, float second)
{
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
    uint16_t pair;
    asm("{\n\t.reg .b8 pair;\n\tcvt.rn.satfinite.e2m1x2.f32 pair, %2, %1;\n\tcvt.u16.u8 %0, pair;\n\t}"
        : "=h"(pair)
        : "f"(first), "f"(second));
    return pair;
#else
    return fp4_from_float(first) | (uint32_t)fp4_from_float(second) << 4;
#endif
}

template <typename T> struct tile {
    T values[SIDE][SIDE + 4 / sizeof(T)];    // padded, so that threads that read adjacent rows avoid bank conflicts

    // Loads a tile; values beyond the matrix are zero.
    __device__ void load(const T *in, int64_t first_row, int64_t first_column, int64_t rows, int64_t columns)
    {
        __syncthreads();    // all threads have read the previous tile
        for (int i = (int)threadIdx.x; i < SIDE * SIDE; i += THREADS) {
            int64_t row = first_row + i / SIDE, column = first_column + i % SIDE;
            values[i / SIDE][i % SIDE] = row < rows && column < columns ? in[row * columns + column] : T(0);
        }
        __syncthreads();
    }
};

// Reads 16 adjacent elements of a row of the tile, or of a column if is_transposed. Applies the Hadamard transform to a
// column if `transforms`.
template <typename T>
__device__ inline void fetch_block(float (&values)[BLOCK], const tile<T> &from, int row, int first, bool is_transposed,
                                   bool transforms)
{
    each<BLOCK>(
        [&](int i) { values[i] = widen(is_transposed ? from.values[first + i][row] : from.values[row][first + i]); });
    if (transforms && is_transposed) {
        fp4_transform(values);
    }
}

__device__ inline float largest_of(const float (&values)[BLOCK])
{
    float largest = 0;
    each<BLOCK>([&](int i) { largest = fmaxf(largest, fabsf(values[i])); });
    return largest;
}

// First pass: writes the amax of the row-wise copy to scratch[0] and of the transposed copy to scratch[1]. They differ
// if columns are Hadamard-transformed.
template <typename T> __global__ void __launch_bounds__(THREADS) magnitude_kernel(const struct quantize_nv_args args)
{
    __shared__ tile<T> read;
    bool               is_transposed = threadIdx.x >= SIDE;
    int64_t            across        = launch_groups(args.of.columns, SIDE);
    float              largest       = 0;
    for (int64_t i = blockIdx.x; i < launch_groups(args.of.rows, SIDE) * across; i += gridDim.x) {
        read.load((const T *)args.of.in, i / across * SIDE, i % across * SIDE, args.of.rows, args.of.columns);
        for (int first = 0; first < SIDE; first += BLOCK) {
            float values[BLOCK];
            fetch_block(values, read, (int)threadIdx.x % SIDE, first, is_transposed, args.transforms);
            largest = fmaxf(largest, largest_of(values));
        }
    }
    raise(args.of.scratch, is_transposed ? 0.0f : largest);
    raise(args.of.scratch + 1, is_transposed ? largest : 0.0f);
}

// The copy that a thread writes: row-wise or transposed.
struct copy {
    uint8_t *codes, *factors;
    float    scale;
    int64_t  rows, columns;
    uint64_t stream;
};

__device__ inline struct copy copy_of(const struct quantize_nv_args &args, bool is_transposed)
{
    return {is_transposed ? args.of.transposed : args.of.out,
            (uint8_t *)(is_transposed ? args.of.transposed_inverse_scale : args.of.factor),
            fp4_tensor_scale(args.of.scratch[is_transposed]),
            is_transposed ? args.of.columns : args.of.rows,
            is_transposed ? args.of.rows : args.of.columns,
            fp4_stream(args.draw, is_transposed)};
}

// Encodes a block of 16 values with its inverse scale `factor`. index: number of the block in the copy, which selects
// its random numbers.
__device__ inline uint2 encode_block(const float (&values)[BLOCK], const struct quantize_nv_args &args,
                                     const struct copy &its, uint8_t factor, uint64_t index)
{
    float    scale    = fp4_block_scale(factor, its.scale);
    uint32_t words[2] = {0, 0};
    if (args.is_stochastic) {
        struct random_block drawn = random_philox(fp4_key(args.key[0], args.key[1]), its.stream, index);
        each<BLOCK>(
            [&](int i) { words[i / 8] |= (uint32_t)fp4_draw(values[i] * scale, fp4_byte(&drawn, i)) << i % 8 * 4; });
    } else {
#pragma unroll
        for (int i = 0; i < BLOCK; i += 2) {
            words[i / 8] |= nearest_pair(values[i] * scale, values[i + 1] * scale) << i % 8 * 4;
        }
    }
    return make_uint2(words[0], words[1]);
}

template <typename T, bool is_square>
__global__ void __launch_bounds__(THREADS) quantize_kernel(const struct quantize_nv_args args)
{
    __shared__ tile<T> read;
    bool               is_transposed = threadIdx.x >= SIDE;
    struct copy        its           = copy_of(args, is_transposed);
    int64_t            across        = launch_groups(args.of.columns, SIDE);
    float             *tensor_scale  = is_transposed ? args.transposed_tensor_scale : args.tensor_scale;
    if (blockIdx.x == 0 && threadIdx.x % SIDE == 0 && tensor_scale != NULL) {
        *tensor_scale = 1 / its.scale;
    }
    for (int64_t i = blockIdx.x; i < launch_groups(args.of.rows, SIDE) * across; i += gridDim.x) {
        int64_t first_row = i / across * SIDE, first_column = i % across * SIDE;
        read.load((const T *)args.of.in, first_row, first_column, args.of.rows, args.of.columns);
        int64_t row   = (is_transposed ? first_column : first_row) + threadIdx.x % SIDE;
        int64_t start = is_transposed ? first_row : first_column;
        for (int first = 0; first < SIDE && its.codes != NULL; first += BLOCK) {
            float values[BLOCK];
            fetch_block(values, read, (int)threadIdx.x % SIDE, first, is_transposed, args.transforms);
            float largest = largest_of(values);
            for (int distance = BLOCK / 2; is_square && distance > 0; distance /= 2) {
                largest = fmaxf(largest, __shfl_xor_sync(UINT32_MAX, largest, distance));
            }
            int64_t column = start + first;
            if (row < its.rows && column < its.columns) {
                uint8_t factor = fp4_block_factor(largest, its.scale);
                int64_t at     = row * its.columns + column;
                its.factors[scaling_inverse_at(SCALING_NV, its.rows, its.columns, row, column)] = factor;
                *(uint2 *)(its.codes + at / 2) = encode_block(values, args, its, factor, (uint64_t)(at / BLOCK));
            }
        }
    }
}

__global__ void factors_kernel(const struct factors_args args)
{
    if (threadIdx.x == 0) {
        args.out[0] = args.scale * (args.one != NULL ? *args.one : 1.0f) * (args.other != NULL ? *args.other : 1.0f);
        args.out[1] = args.keep;
    }
}

struct launch launch_of(void (*kernel)(struct quantize_nv_args), const struct quantize_nv_args *args,
                        const struct kernel_target *target)
{
    int64_t tiles = launch_groups(args->of.rows, SIDE) * launch_groups(args->of.columns, SIDE);
    return {launch_resident_blocks(tiles, resident_blocks(kernel, THREADS, 0), target->multiprocessors), THREADS};
}

// Sets the inverse scales to zero if their padded layout extends beyond the matrix.
int clear_factors(void *factors, int64_t rows, int64_t columns, const struct kernel_target *target)
{
    bool is_whole = rows % SCALING_SIDE == 0 && columns % SIDE == 0;
    return factors == NULL || is_whole
               ? 0
               : (int)cudaMemsetAsync(factors, 0, (size_t)scaling_inverses(SCALING_NV, rows, columns), target->stream);
}
}    // namespace

int kernel_quantize_nv(const struct quantize_nv_args *args, const struct kernel_target *target)
{
    bool is_misaligned = (args->of.out != NULL && args->of.columns % BLOCK != 0) ||
                         (args->of.transposed != NULL && args->of.rows % BLOCK != 0) ||
                         addresses(args->of.out, args->of.transposed) % sizeof(uint2) != 0;
    int error = is_misaligned ? (int)cudaErrorInvalidValue : 0;
    error     = error != 0 ? error : clear_factors(args->of.factor, args->of.rows, args->of.columns, target);
    error =
        error != 0 ? error : clear_factors(args->of.transposed_inverse_scale, args->of.columns, args->of.rows, target);
    error = error != 0 ? error : (int)cudaMemsetAsync(args->of.scratch, 0, 2 * sizeof(float), target->stream);
    return error != 0 ? error : with_type(args->of.type, [&](auto type) {
        using T                               = decltype(type);
        bool is_square                        = args->of.scaling == SCALING_NV_SQUARE;
        void (*find)(struct quantize_nv_args) = magnitude_kernel<T>;
        void (*make)(struct quantize_nv_args) = is_square ? quantize_kernel<T, true> : quantize_kernel<T, false>;
        int failure                           = enqueue(find, launch_of(find, args, target), 0, target, *args);
        return failure != 0 ? failure : enqueue(make, launch_of(make, args, target), 0, target, *args);
    });
}

int kernel_factors(const struct factors_args *args, const struct kernel_target *target)
{
    return enqueue(factors_kernel, {1, LAUNCH_WARP}, 0, target, *args);
}
