// SPDX-License-Identifier: MIT
// A block takes a row: one pass for the largest logit and the sum of exponentials, one that writes the gradient from
// what the first has left in shared memory.
#include "cross_entropy.h"
#include "device.cuh"
#include "softmax.h"

namespace
{
constexpr int width = LAUNCH_WIDTH;

struct row_statistics {
    float maximum, sum, target;
};

// The target's column, or -1 when it is in another part. Args: of either kernel.
template <typename Args> __device__ inline int64_t local_target(const Args &args, int64_t row)
{
    int64_t target = args.targets[row] - args.first;
    return target >= 0 && target < args.valid ? target : -1;
}

// Leaves the first held packets in shared memory. Every thread returns the statistics; all threads have read the
// target's logit by then.
template <typename T, bool is_wide, typename Args>
__device__ inline row_statistics read_row(const T *logits, int64_t target, packet<T> *shared, int held,
                                          const Args &args)
{
    constexpr int  batch   = 8 / sizeof(T);    // packets whose loads are in flight together
    struct softmax part    = SOFTMAX_EMPTY;
    float          chosen  = target >= 0 ? widen(logits[target]) : 0.0f;
    int            packets = (int)launch_groups(args.valid, width);
    for (int first = threadIdx.x; first < packets; first += batch * blockDim.x) {
        packet<T> raw[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int     index = first + i * blockDim.x;
            int64_t at    = (int64_t)index * width;
            if (index < packets) {
                raw[i] = fetch<is_wide>(logits + at, packet_elements<is_wide>(at, args.columns));
            }
        }
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int     index = first + i * blockDim.x;
            int64_t at    = (int64_t)index * width;
            if (index < packets) {
                float values[width];
                unpack(values, raw[i]);
                if (index < held) {
                    shared[index] = raw[i];
                }
#pragma unroll
                for (int j = 0; j < width; j++) {
                    values[j] = at + j < args.valid ? values[j] : -INFINITY;
                }
                softmax_add(&part, values, width);
            }
        }
    }
    float maximum = block_maximum(part.maximum);
    return {maximum, block_sum(softmax_sum_at(part, maximum)), chosen};
}

__device__ inline row_statistics join_parts(const struct cross_entropy_args &args, int64_t row)
{
    row_statistics joined = {-INFINITY, 0, 0};
    for (int64_t part = 0; part < args.parts; part++) {
        const float *own = args.statistics + (part * args.rows + row) * LOGIT_STATISTICS_FLOATS;
        joined.maximum   = fmaxf(joined.maximum, own[0]);
        joined.target += own[2];
    }
    for (int64_t part = 0; part < args.parts; part++) {
        const float *own = args.statistics + (part * args.rows + row) * LOGIT_STATISTICS_FLOATS;
        joined.sum += own[1] * arithmetic_exp(own[0] - joined.maximum);
    }
    return joined;
}

// Every thread finds in shared memory what it has left there itself.
template <typename T, bool is_wide>
__device__ inline void write_row(T *logits, int64_t target, const packet<T> *shared, int held,
                                 const row_statistics &row, const struct cross_entropy_args &args)
{
    float factor  = args.scale / row.sum;
    int   packets = (int)launch_groups(args.columns, width);
#pragma unroll 2
    for (int index = threadIdx.x; index < packets; index += blockDim.x) {
        int64_t   at    = (int64_t)index * width;
        int       count = packet_elements<is_wide>(at, args.columns);
        packet<T> raw   = {};
        float     values[width];
        if (index < held && at < args.valid) {
            raw = shared[index];
        } else if (at < args.valid) {
            raw = fetch<is_wide>(logits + at, count);
        }
        unpack(values, raw);
#pragma unroll
        for (int j = 0; j < width; j++) {
            values[j] = at + j < args.valid ? arithmetic_exp(values[j] - row.maximum) * factor : 0.0f;
            values[j] -= at + j == target ? args.scale : 0.0f;
        }
        store<is_wide>(logits + at, values, count);
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(CROSS_ENTROPY_THREADS) statistics_kernel(const struct logit_statistics_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const T       *logits = (const T *)args.logits + row * args.columns;
        float         *to     = args.out + row * LOGIT_STATISTICS_FLOATS;
        row_statistics own    = read_row<T, is_wide>(logits, local_target(args, row), NULL, 0, args);
        if (threadIdx.x == 0) {
            to[0] = args.valid > 0 ? own.maximum : -INFINITY;
            to[1] = own.sum;
            to[2] = own.target;
        }
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(CROSS_ENTROPY_THREADS) entropy_kernel(const struct cross_entropy_args args, int held)
{
    packet<T> *packets = dynamic_shared<packet<T>>();
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        T             *logits = (T *)args.logits + row * args.columns;
        int64_t        target = local_target(args, row);
        row_statistics all =
            args.statistics != NULL ? join_parts(args, row) : read_row<T, is_wide>(logits, target, packets, held, args);
        if (threadIdx.x == 0) {
            args.losses[row] = logf(all.sum) + all.maximum - all.target;
        }
        write_row<T, is_wide>(logits, target, packets, held, all, args);
    }
}

struct launch launch_of(int64_t rows, int64_t columns, const struct kernel_target *target)
{
    return launch_rows(rows, launch_groups(columns, width), CROSS_ENTROPY_THREADS, target->multiprocessors);
}
}    // namespace

int kernel_logit_statistics(const struct logit_statistics_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_of(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->logits));
    return with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return enqueue(statistics_kernel<decltype(type), wide.value>, launch, 0, target, *args);
        });
    });
}

int kernel_cross_entropy(const struct cross_entropy_args *args, const struct kernel_target *target)
{
    struct launch launch  = launch_of(args->rows, args->columns, target);
    bool          is_wide = launch_is_wide(args->columns, addresses(args->logits));
    int64_t       bytes =
        args->statistics != NULL ? 0 : cross_entropy_held_bytes(args->columns, args->type, target->shared_bytes);
    int held = (int)(format_elements(args->type, bytes) / width);
    return with_type(args->type, [&](auto type) {
        return with_flag(is_wide, [&](auto wide) {
            return enqueue(entropy_kernel<decltype(type), wide.value>, launch, bytes, target, *args, held);
        });
    });
}
