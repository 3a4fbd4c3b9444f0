// SPDX-License-Identifier: MIT
// Cross entropy with x = multiplier * logits:
//
//   loss = log(sum(exp(x))) - x[target], d loss / d x = softmax(x) - onehot(target)
//
// A thread block handles one row at a time. A first pass over the row computes maximum and sum and keeps the logits in
// shared memory. A second pass writes the gradient, and at the same time does the first pass of the block's next row.
// If the vocabulary is sharded, statistics_kernel does the first pass on each rank. entropy_kernel then combines the
// statistics of the shards and does only the second pass.
#include "cross_entropy.h"
#include "device.cuh"

namespace
{
struct row_statistics {
    float maximum, sum, target;
};

// Returns the target's column, or -1 if it is in another vocabulary shard. Both kernels use it, each with its own Args.
template <typename Args> __device__ inline int local_target(const Args &args, int64_t row)
{
    int64_t target = args.targets[row] - args.first;
    return target >= 0 && target < args.valid ? (int)target : -1;
}

// Number of packets (eight logits) that a thread loads together: in a pass that only reads, and in one that also
// writes. statistics_kernel uses the smaller number although it only reads. This saves registers, so two blocks fit on
// an SM and one reads while the other reduces.
template <typename T> constexpr int read_together    = 8 / sizeof(T);
template <typename T> constexpr int written_together = 4 / sizeof(T);

// Replaces the values from index `valid` on, which are padding of the vocabulary. Most packets have no padding.
__device__ inline void replace_padding(float (&values)[width], float value, int valid)
{
    if (valid < width) {
        each([&](int j) { values[j] = j < valid ? values[j] : value; });
    }
}

// Adds a packet of eight logits, the first at column `at`, to a thread's online softmax. Padding counts as -infinity.
template <typename T, typename Args>
__device__ inline void add_packet(struct softmax *part, const packet<T> &raw, int at, const Args &args)
{
    float values[width];
    unpack(values, raw);
    each([&](int j) { values[j] *= args.multiplier; });
    replace_padding(values, -INFINITY, (int)args.valid - at);
    softmax_add(part, values, width);
}

// Reads a thread's part of a row into an online softmax, and keeps the row's first `held` packets in shared memory.
template <typename T, bool is_wide, int batch, typename Args>
__device__ inline struct softmax read_row(const T *logits, packet<T> *shared, int held, const Args &args)
{
    struct softmax part    = SOFTMAX_EMPTY;
    int            packets = (int)launch_groups(args.valid, width);
    for (int first = threadIdx.x; first < packets; first += batch * blockDim.x) {
        packet<T> raw[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int index = first + i * blockDim.x, at = index * width;
            if (index < packets) {
                raw[i] = fetch<is_wide>(logits + at, packet_elements<is_wide>(at, args.columns));
            }
        }
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int index = first + i * blockDim.x;
            if (index < packets) {
                if (index < held) {
                    shared[index] = raw[i];
                }
                add_packet(&part, raw[i], index * width, args);
            }
        }
    }
    return part;
}

// Combines the online softmax states of a block's threads. When it returns, every thread has read the target's logit,
// so the caller may overwrite the row.
template <typename T, typename Args>
__device__ inline row_statistics join_threads(const struct softmax &part, const T *logits, int target, const Args &args)
{
    float chosen  = target >= 0 ? widen(logits[target]) * args.multiplier : 0.0f;
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

// Replaces a packet's logits by the gradient of the loss.
__device__ inline void differentiate(float (&values)[width], int at, int target, const row_statistics &row,
                                     const struct cross_entropy_args &args)
{
    float scale = args.scale * args.multiplier, factor = scale / row.sum;
    each([&](int j) { values[j] = arithmetic_exp(values[j] * args.multiplier - row.maximum) * factor; });
    replace_padding(values, 0.0f, (int)args.valid - at);
    if (target >= at && target < at + width) {
        each([&](int j) { values[j] -= at + j == target ? scale : 0.0f; });
    }
}

// Writes the gradient of a row and reads the block's next row, if any. Both rows use the same shared memory: each
// thread reads and writes only its own packets there. Returns the thread's online softmax state of the next row.
template <typename T, bool is_wide>
__device__ inline struct softmax turn_row(T *logits, const T *next, packet<T> *shared, int held, int target,
                                          const row_statistics &row, const struct cross_entropy_args &args)
{
    constexpr int  batch   = written_together<T>;
    struct softmax part    = SOFTMAX_EMPTY;
    int            packets = (int)launch_groups(args.columns, width), valid = (int)launch_groups(args.valid, width);
    for (int first = threadIdx.x; first < packets; first += batch * blockDim.x) {
        packet<T> raw[batch], coming[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int index = first + i * blockDim.x, at = index * width;
            int count = packet_elements<is_wide>(at, args.columns);
            raw[i]    = packet<T>{};
            if (index < valid && index >= held) {
                raw[i] = fetch<is_wide>(logits + at, count);
            }
            if (index < valid && next != NULL) {
                coming[i] = fetch<is_wide>(next + at, count);
            }
        }
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int   index = first + i * blockDim.x, at = index * width;
            float values[width];
            if (index >= packets) {
                continue;
            }
            if (index < valid && index < held) {
                raw[i] = shared[index];
            }
            unpack(values, raw[i]);
            differentiate(values, at, target, row, args);
            store<is_wide>(logits + at, values, packet_elements<is_wide>(at, args.columns));
            if (index < valid && next != NULL) {
                if (index < held) {
                    shared[index] = coming[i];
                }
                add_packet(&part, coming[i], at, args);
            }
        }
    }
    return part;
}

// Number of blocks per SM for the launch bound. ptxas rejects a bound that exceeds the threads of an SM: 1,536 for
// compute capability 8.6, 8.7, 8.9 and from 11.0 on, else 2,048.
#if defined(__CUDA_ARCH__) &&                                                                                          \
    (__CUDA_ARCH__ / 10 == 86 || __CUDA_ARCH__ / 10 == 87 || __CUDA_ARCH__ / 10 == 89 || __CUDA_ARCH__ >= 1100)
enum { STATISTICS_BLOCKS = 1536 / CROSS_ENTROPY_THREADS };
#else
enum { STATISTICS_BLOCKS = 2048 / CROSS_ENTROPY_THREADS };
#endif

template <typename T, bool is_wide>
__global__ void __launch_bounds__(CROSS_ENTROPY_THREADS, STATISTICS_BLOCKS)
    statistics_kernel(const struct logit_statistics_args args)
{
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const T       *logits = (const T *)args.logits + row * args.columns;
        float         *to     = args.out + row * LOGIT_STATISTICS_FLOATS;
        struct softmax part   = read_row<T, is_wide, written_together<T>>(logits, NULL, 0, args);
        row_statistics own    = join_threads(part, logits, local_target(args, row), args);
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
    packet<T>     *packets = dynamic_shared<packet<T>>();
    T             *all     = (T *)args.logits;
    bool           is_here = args.statistics == NULL;    // the vocabulary is not sharded: this kernel does both passes
    struct softmax part    = SOFTMAX_EMPTY;
    if (is_here && blockIdx.x < args.rows) {
        part = read_row<T, is_wide, read_together<T>>(all + blockIdx.x * args.columns, packets, held, args);
    }
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        T             *logits = all + row * args.columns;
        int            target = local_target(args, row);
        int64_t        after  = row + gridDim.x;
        row_statistics joined = is_here ? join_threads(part, logits, target, args) : join_parts(args, row);
        const T       *next   = is_here && after < args.rows ? all + after * args.columns : NULL;
        if (threadIdx.x == 0) {
            args.losses[row] = logf(joined.sum) + (joined.maximum - joined.target);
        }
        part = turn_row<T, is_wide>(logits, next, packets, held, target, joined, args);
    }
}

// Enqueues a kernel in which a block handles one row at a time.
template <typename Args, typename... More>
int enqueue_rows(void (*kernel)(Args, More...), const Args &args, int64_t bytes, const struct kernel_target *target,
                 const More &...more)
{
    struct launch launch =
        launch_rows(args.rows, launch_groups(args.columns, width), CROSS_ENTROPY_THREADS, target->multiprocessors);
    int resident  = resident_blocks(kernel, launch.threads, bytes);
    launch.blocks = launch_resident_blocks(args.rows, resident, target->multiprocessors);
    return enqueue(kernel, launch, bytes, target, args, more...);
}
}    // namespace

int kernel_logit_statistics(const struct logit_statistics_args *args, const struct kernel_target *target)
{
    bool is_wide = launch_is_wide(args->columns, addresses(args->logits));
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue_rows(statistics_kernel<decltype(type), wide.value>, *args, 0, target);
    });
}

int kernel_cross_entropy(const struct cross_entropy_args *args, const struct kernel_target *target)
{
    bool    is_wide = launch_is_wide(args->columns, addresses(args->logits));
    int64_t bytes =
        args->statistics != NULL ? 0 : cross_entropy_held_bytes(args->columns, args->type, target->shared_bytes);
    int held = (int)(format_elements(args->type, bytes) / width);
    return with_packets(args->type, is_wide, [&](auto type, auto wide) {
        return enqueue_rows(entropy_kernel<decltype(type), wide.value>, *args, bytes, target, held);
    });
}
