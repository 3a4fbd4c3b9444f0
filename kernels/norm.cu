// SPDX-License-Identifier: MIT
// Normalises rows:
//
//   y = (x - mean) / deviation * weight + bias, x = in + branch
//
// with deviation = sqrt(mean of (x - mean)^2 + epsilon). RMS norm uses mean = 0 and no bias. One thread block handles
// one row at a time and holds it in registers, so that the row is read once.
#include "norm.cuh"

namespace
{
// Computes x = in + branch, rounds it to its type in memory and stores it in sum. The norm uses the rounded x.
template <typename T, bool is_wide>
__device__ inline void add_branch(packet<T> (&x)[held], const packet<T> (&branch)[held], T *sum, int64_t columns)
{
#pragma unroll
    for (int i = 0; i < held; i++) {
        place here = place_of<is_wide>(i, columns);
        float values[width], added[width];
        unpack(values, x[i]);
        unpack(added, branch[i]);
        each([&](int j) { values[j] += added[j]; });
        x[i] = pack<T>(values);
        if (here.is_here) {
            put<is_wide>(sum + here.at, x[i], here.count);
        }
    }
}

// Returns the sum of x (power 1) or of (x - mean)^2 (power 2) over a row, which is in the registers of the block.
template <int power, typename T, bool is_wide>
__device__ inline float row_moment(const packet<T> (&x)[held], float mean, int64_t columns)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < held; i++) {
        place here = place_of<is_wide>(i, columns);
        float values[width];
        unpack(values, x[i]);
#pragma unroll
        for (int j = 0; j < width; j++) {
            if (here.is_here && j < here.count) {
                sum += power == 1 ? values[j] : (values[j] - mean) * (values[j] - mean);
            }
        }
    }
    return block_sum(sum);
}

// Normalises `count` values of a row, the first at `column`. mean and inverse (1 / deviation): statistics of the row.
template <typename T, bool is_wide>
__device__ inline void normalise(float (&values)[width], float mean, float inverse, int64_t column, int count,
                                 const struct norm_forward_args &args)
{
    float     factor[width], offset[width];
    packet<T> bias = fetch<is_wide>((const T *)(args.bias != NULL ? args.bias : args.weight) + column, count);
    load<is_wide>(factor, (const T *)args.weight + column, count);
    unpack(offset, args.bias != NULL ? bias : packet<T>{});
    each([&](int j) { values[j] = (values[j] - mean) * inverse * (factor[j] + args.weight_offset) + offset[j]; });
}

// Threads for the launch bound. Blocks have at most 640, but a bound of 1,024 limits a thread to 64 registers, so that
// an SM runs 1,024 threads. For rows of 16,384 elements these are two blocks, and one loads while the other reduces.
// fp32 rows need more registers.
template <typename T, bool is_wide>
constexpr int max_threads = is_wide && sizeof(T) == sizeof(bf16) ? 1024 : NORM_THREADS_MAX;

template <typename T, bool is_wide>
__global__ void __launch_bounds__(max_threads<T, is_wide>) forward_kernel(const struct norm_forward_args args)
{
    const T *branch  = (const T *)args.branch;
    float    largest = 0;
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        int64_t   begin   = row * args.columns;
        packet<T> x[held] = {}, added[held] = {};
#pragma unroll
        for (int i = 0; i < held; i++) {
            place here = place_of<is_wide>(i, args.columns);
            if (here.is_here) {
                x[i] = fetch<is_wide>((const T *)args.in + begin + here.at, here.count);
                if (branch != NULL) {
                    added[i] = fetch<is_wide>(branch + begin + here.at, here.count);
                }
            }
        }
        if (branch != NULL) {
            add_branch<T, is_wide>(x, added, (T *)args.sum + begin, args.columns);
        }
        float columns = (float)args.columns;
        float mean    = args.is_centred ? row_moment<1, T, is_wide>(x, 0, args.columns) / columns : 0.0f;
        float inverse = 1.0f / sqrtf(row_moment<2, T, is_wide>(x, mean, args.columns) / columns + args.epsilon);
#pragma unroll
        for (int i = 0; i < held; i++) {
            place here = place_of<is_wide>(i, args.columns);
            float values[width];
            if (here.is_here && (args.out != NULL || args.magnitude != NULL)) {
                unpack(values, x[i]);
                normalise<T, is_wide>(values, mean, inverse, here.at, here.count, args);
                largest = larger(largest, values, here.count);
                if (args.out != NULL) {
                    store<is_wide>((T *)args.out + begin + here.at, values, here.count);
                }
            }
        }
        if (threadIdx.x == 0) {
            args.statistics[2 * row]     = mean;
            args.statistics[2 * row + 1] = inverse;
        }
    }
    if (args.magnitude != NULL) {
        raise_stored<T>(args.magnitude, largest);
    }
}

// Computes normalised rows for the FP8 quantization kernel (quantize.cuh), from x and the statistics in memory.
struct normalised_source {
    struct norm_forward_args args;
    static constexpr int     parts = 1, operands = 1, together = width;

    template <bool is_wide>
    __device__ void fetch_row(packet<bf16> (&to)[1], int64_t row, int64_t column, int64_t pitch, int count) const
    {
        const bf16 *x = (const bf16 *)(args.branch != NULL ? args.sum : args.in);
        to[0]         = fetch<is_wide>(x + row * pitch + column, count);
    }
    template <bool is_wide>
    __device__ void compute(packet<bf16> (&to)[1], const packet<bf16> (&from)[1], int64_t row, int64_t column,
                            int count) const
    {
        float values[width];
        unpack(values, from[0]);
        normalise<bf16, is_wide>(values, args.statistics[2 * row], args.statistics[2 * row + 1], column, count, args);
        to[0] = pack<bf16>(values);
    }
};
}    // namespace

int kernel_norm_forward(const struct norm_forward_args *args, const struct kernel_target *target)
{
    struct launch launch  = norm_launch(args->rows, args->columns, target->multiprocessors);
    bool          is_wide = launch_is_wide(args->columns,
                                           addresses(args->in, args->branch, args->weight, args->bias, args->sum, args->out));
    int           error   = clear_magnitude(args->magnitude, target);
    return error != 0 ? error : with_packets(args->activation, is_wide, [&](auto type, auto wide) {
        return enqueue(forward_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}

int kernel_norm_quantize(const struct norm_forward_args *args, const struct quantize_args *copies,
                         const struct kernel_target *target)
{
    bool is_wide = launch_is_wide(args->columns, addresses(args->in, args->weight, args->bias, args->sum));
    return enqueue_fused(normalised_source{*args}, copies, is_wide, target);
}
