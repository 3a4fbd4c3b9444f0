// SPDX-License-Identifier: MIT
// Computes the gradients of a norm, with n = (x - mean) / deviation and g = d out * weight:
//
//   d x      = (g - mean(g) - n mean(g n)) / deviation + residual; RMS norm omits mean(g)
//   d weight = sum over rows of d out * n
//   d bias   = sum over rows of d out
//
// One thread block handles one row at a time. The weight gradient is summed in two stages: each block sums over its
// rows, in registers or shared memory; then the partial sums of the blocks are added in order. If the shared memory is
// too small for the sums of both gradients, kernel_column_sum computes the bias gradient.
#include "elements.h"
#include "norm.cuh"
#include "sum_parts.cuh"

namespace
{
// A block of this many threads fills an SM, because each thread uses more than 100 of the SM's 65,536 registers.
constexpr int BUSY_THREADS = 512;

template <typename T, bool is_wide>
__device__ inline void read_values(gradient_values *values, const gradient_row<T> &row, int i, const place &here,
                                   const struct norm_backward_args &args)
{
    float x[width], factor[width];
    unpack(values->gradient, row.gradient[i]);
    unpack(x, row.x[i]);
    load<is_wide>(factor, (const T *)args.weight + here.at, here.count);
    each([&](int j) {
        values->normalised[j] = (x[j] - row.mean) * row.inverse;
        values->product[j]    = values->gradient[j] * (factor[j] + args.weight_offset);
    });
}

// Adds a row to the partial sums of the weight gradient, and adds this thread's g and g n to along[0] and along[1].
// Elements beyond the row are zero.
template <typename T, bool is_wide, typename Sums>
__device__ inline void add_row(Sums &sums, float (&along)[2], const gradient_row<T> &row,
                               const struct norm_backward_args &args)
{
    each<held>([&](int i) {
        place           here = place_of<is_wide>(i, args.columns);
        gradient_values values;
        if (here.is_here) {
            read_values<T, is_wide>(&values, row, i, here, args);
            each([&](int j) {
                along[0] += values.product[j];
                along[1] += values.product[j] * values.normalised[j];
                sums.add(i, j, here, values);
            });
        }
    });
}

template <typename T, bool is_wide, bool is_early>
__device__ inline void write_row(const gradient_row<T> &row, const float (&along)[2], int64_t begin,
                                 const struct norm_backward_args &args)
{
    const T *residual = (const T *)args.residual;
    each<held>([&](int i) {
        place           here = place_of<is_wide>(i, args.columns);
        gradient_values values;
        float           added[width] = {};
        if (here.is_here) {
            read_values<T, is_wide>(&values, row, i, here, args);
            if (is_early) {
                unpack(added, row.residual[i]);
            } else if (residual != NULL) {
                load<is_wide>(added, residual + begin + here.at, here.count);
            }
            each([&](int j) {
                added[j] += row.inverse * (values.product[j] - along[0] - values.normalised[j] * along[1]);
            });
            store<is_wide>((T *)args.out + begin + here.at, added, here.count);
        }
    });
}

// Prefetches the next row to L2. A block that fills an SM has no loads in flight while it reduces its row, so without
// this the memory would be idle. is_early: residual is loaded together with gradient and x, not after the reduction.
template <typename T>
__device__ inline void fetch_next(int64_t begin, int64_t next, const struct norm_backward_args &args, bool is_early)
{
    int64_t bytes = args.columns * (int64_t)sizeof(T);
    if (threadIdx.x != 0 || blockDim.x < BUSY_THREADS) {
        return;
    }
    if (args.residual != NULL && !is_early) {
        fetch_ahead((const T *)args.residual + begin, bytes);
    }
    if (next < args.rows * args.columns) {
        fetch_ahead((const T *)args.gradient + next, bytes);
        fetch_ahead((const T *)args.x + next, bytes);
    }
    if (next < args.rows * args.columns && args.residual != NULL && is_early) {
        fetch_ahead((const T *)args.residual + next, bytes);
    }
}

template <typename T, bool is_wide, bool is_early, typename Sums>
__device__ inline void walk_rows(Sums &sums, const struct norm_backward_args &args)
{
    for (int64_t index = blockIdx.x; index < args.rows; index += gridDim.x) {
        gradient_row<T> row   = {};
        int64_t         begin = index * args.columns;
        each<held>([&](int i) {
            place here = place_of<is_wide>(i, args.columns);
            if (here.is_here) {
                row.gradient[i] = fetch<is_wide>((const T *)args.gradient + begin + here.at, here.count);
                row.x[i]        = fetch<is_wide>((const T *)args.x + begin + here.at, here.count);
                if (is_early && args.residual != NULL) {
                    row.residual[i] = fetch<is_wide>((const T *)args.residual + begin + here.at, here.count);
                }
            }
        });
        if (is_wide) {
            fetch_next<T>(begin, begin + gridDim.x * args.columns, args, is_early);
        }
        row.mean       = args.statistics[2 * index];
        row.inverse    = args.statistics[2 * index + 1];
        float along[2] = {};
        add_row<T, is_wide>(sums, along, row, args);
        block_sum(along);
        along[0] = args.is_centred ? along[0] / (float)args.columns : 0.0f;
        along[1] /= (float)args.columns;
        write_row<T, is_wide, is_early>(row, along, begin, args);
    }
}

template <typename T, bool is_wide, bool has_bias>
__global__ void __launch_bounds__(NORM_THREADS_MAX) backward_kernel(const struct norm_backward_args args)
{
    shared_sums<is_wide, has_bias> sums(args.columns);
    walk_rows<T, is_wide, sizeof(T) == sizeof(bf16)>(sums, args);
    sums.write(args.scratch + blockIdx.x * (has_bias ? 2 : 1) * args.columns, args.columns);
}

// Variant for bf16 without a bias. The partial sums and all operands of a row fit in registers.
__global__ void __launch_bounds__(BUSY_THREADS) plain_kernel(const struct norm_backward_args args)
{
    register_sums sums(args.columns);
    walk_rows<bf16, true, true>(sums, args);
    sums.write(args.scratch + blockIdx.x * args.columns, args.columns);
}

struct choice {
    void (*kernel)(struct norm_backward_args);
    struct launch launch;
    int64_t       shared_bytes;
};

int choose(choice *chosen, const struct norm_backward_args *args, bool is_wide, const struct kernel_target *target)
{
    int64_t  kinds       = args->bias_gradient != NULL ? 2 : 1;
    uint32_t threads     = norm_launch(args->rows, args->columns, target->multiprocessors).threads;
    bool     is_plain    = args->activation == FORMAT_BF16 && is_wide && kinds == 1 && threads <= BUSY_THREADS;
    int      error       = with_packets(args->activation, is_wide, [&](auto type, auto wide) {
        return with_flag(kinds == 2, [&](auto bias) {
            chosen->kernel = backward_kernel<decltype(type), wide.value, bias.value>;
            return 0;
        });
    });
    chosen->kernel       = is_plain ? plain_kernel : chosen->kernel;
    chosen->shared_bytes = is_plain ? 0 : norm_backward_shared_bytes(args->columns, kinds);
    if (error == 0) {
        int resident   = resident_blocks(chosen->kernel, threads, chosen->shared_bytes);
        chosen->launch = norm_backward_launch(args->rows, args->columns, resident, target->multiprocessors);
    }
    return error;
}

int enqueue_backward(const struct norm_backward_args *args, const struct kernel_target *target)
{
    choice  chosen = {};
    int64_t kinds  = args->bias_gradient != NULL ? 2 : 1;
    bool    is_wide =
        launch_is_wide(args->columns, addresses(args->gradient, args->x, args->residual, args->weight, args->out));
    int error = choose(&chosen, args, is_wide, target);
    error     = error != 0 ? error : enqueue(chosen.kernel, chosen.launch, chosen.shared_bytes, target, *args);
    if (error != 0 || args->weight_gradient == NULL) {
        return error;
    }
    struct part_sums_args sums = {args->scratch,        {args->weight_gradient, args->bias_gradient},
                                  chosen.launch.blocks, kinds,
                                  args->columns,        args->accumulates};
    return enqueue_sum(sums, args->weight_gradient_type, target);
}
}    // namespace

int64_t kernel_norm_backward_scratch_bytes(int64_t rows, int64_t columns, int64_t sums,
                                           const struct kernel_target *target)
{
    float                     bias   = 0;
    struct norm_backward_args args   = {};
    int64_t                   blocks = 0, fitting = norm_backward_fits(columns, sums, target->shared_bytes) ? sums : 1;
    args.rows          = rows;
    args.columns       = columns;
    args.bias_gradient = fitting > 1 ? &bias : NULL;
    for (enum format type : {FORMAT_F32, FORMAT_BF16}) {
        for (bool is_wide : {false, true}) {
            choice chosen   = {};
            args.activation = type;
            if (choose(&chosen, &args, is_wide, target) == 0) {
                blocks = max(blocks, (int64_t)chosen.launch.blocks);
            }
        }
    }
    int64_t bytes = blocks * fitting * columns * (int64_t)sizeof(float);
    return fitting < sums ? max(bytes, kernel_column_sum_scratch_bytes(rows, columns, target)) : bytes;
}

int kernel_norm_backward(const struct norm_backward_args *args, const struct kernel_target *target)
{
    struct norm_backward_args without_bias = *args;
    struct column_sum_args    bias         = {args->gradient, args->bias_gradient, args->scratch,    args->rows,
                                              args->columns,  args->accumulates,   args->activation, args->weight_gradient_type};
    if (args->bias_gradient == NULL || norm_backward_fits(args->columns, 2, target->shared_bytes)) {
        return enqueue_backward(args, target);
    }
    without_bias.bias_gradient = NULL;
    int error                  = kernel_column_sum(&bias, target);
    return error != 0 ? error : enqueue_backward(&without_bias, target);
}
