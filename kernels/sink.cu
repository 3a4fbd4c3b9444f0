// SPDX-License-Identifier: MIT
// Computes attention sinks from the output O and the log-sum-exp lse of attention over the keys, forward and backward:
//
//   lse'   = log(exp(lse) + exp(sink)), O' = O exp(lse - lse')
//   d sink = -sum over tokens of exp(sink - lse') dot(dO, O')
//
// One warp handles one head of a token. Backward, each block sums over its tokens; then the partial sums are added in
// order.
#include "attention.h"

#include "device.cuh"
#include "gswbench/arithmetic.h"
#include "sum_parts.cuh"

namespace
{
__device__ inline int64_t statistics_at(const struct sink_args &args, int64_t token, int64_t head)
{
    return (token / args.sequence * args.heads + head) * args.sequence + token % args.sequence;
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) sink_forward_kernel(const struct sink_args args)
{
    int64_t heads = args.batch * args.sequence * args.heads;
    int     lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t index = own_warp(); index < heads; index += all_warps()) {
        int64_t place = statistics_at(args, index / args.heads, index % args.heads);
        float   keys = args.statistics[place], sink = widen(((const T *)args.sinks)[index % args.heads]);
        float   keep = 1.0f / (1.0f + expf(sink - keys));
        __syncwarp();
        if (lane == 0) {
            args.statistics[place] = fmaxf(keys, sink) + log1pf(expf(-fabsf(keys - sink)));
        }
        T *out = (T *)args.out + index * args.head_dim;
        for (int at = lane * width; at < args.head_dim; at += LAUNCH_WARP * width) {
            int   count = packet_elements<is_wide>(at, args.head_dim);
            float values[width];
            load<is_wide>(values, out + at, count);
            each([&](int i) { values[i] *= keep; });
            store<is_wide>(out + at, values, count);
        }
    }
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) sink_backward_kernel(const struct sink_args args)
{
    int     lane = threadIdx.x % LAUNCH_WARP, warps = blockDim.x / LAUNCH_WARP;
    int64_t tokens = args.batch * args.sequence;
    for (int64_t head = threadIdx.x / LAUNCH_WARP; head < args.heads; head += warps) {
        float sink = widen(((const T *)args.sinks)[head]), sum = 0;
        for (int64_t token = blockIdx.x; token < tokens; token += gridDim.x) {
            int64_t begin = (token * args.heads + head) * args.head_dim;
            float   dot   = 0;
            for (int at = lane * width; at < args.head_dim; at += LAUNCH_WARP * width) {
                int   count = packet_elements<is_wide>(at, args.head_dim);
                float values[width], others[width];
                load<is_wide>(values, (const T *)args.out + begin + at, count);
                load<is_wide>(others, (const T *)args.gradient + begin + at, count);
                each([&](int i) { dot += values[i] * others[i]; });
            }
            sum -= expf(sink - args.statistics[statistics_at(args, token, head)]) * warp_sum(dot);
        }
        if (lane == 0) {
            args.scratch[blockIdx.x * args.heads + head] = sum;
        }
    }
}

struct launch backward_launch(int64_t tokens, const struct kernel_target *target)
{
    return {launch_blocks(tokens, LAUNCH_THREADS, target->multiprocessors), LAUNCH_THREADS};
}
}    // namespace

int kernel_sink_forward(const struct sink_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_warps(args->batch * args->sequence * args->heads, target->multiprocessors);
    return with_packets(args->type, launch_is_wide(args->head_dim, addresses(args->out)), [&](auto type, auto wide) {
        return enqueue(sink_forward_kernel<decltype(type), wide.value>, launch, 0, target, *args);
    });
}

int64_t kernel_sink_backward_scratch_bytes(int64_t tokens, int64_t heads, const struct kernel_target *target)
{
    return backward_launch(tokens, target).blocks * heads * (int64_t)sizeof(float);
}

int kernel_sink_backward(const struct sink_args *args, const struct kernel_target *target)
{
    struct launch launch = backward_launch(args->batch * args->sequence, target);
    int           error  = with_packets(
                   args->type, launch_is_wide(args->head_dim, addresses(args->out, args->gradient)), [&](auto type, auto wide) {
            return enqueue(sink_backward_kernel<decltype(type), wide.value>, launch, 0, target, *args);
        });
    struct part_sums_args sums = {args->scratch, {args->to, NULL}, launch.blocks, 1, args->heads, args->accumulates};
    return error != 0 ? error : enqueue_sum(sums, args->to_type, target);
}
