// SPDX-License-Identifier: MIT
// Combines the outputs O and log-sum-exps lse of the attention of the same queries over two sets of keys, a and b:
//
//   lse = log(exp(lse_a) + exp(lse_b)), O = exp(lse_a - lse) O_a + exp(lse_b - lse) O_b
//
// One warp handles one head of a token. Its first lane overwrites lse_a after all lanes have read the old value.
#include "attention.h"
#include "device.cuh"
#include "gswbench/arithmetic.h"

namespace
{
template <bool is_wide>
__global__ void __launch_bounds__(LAUNCH_THREADS) merge_kernel(const struct attention_merge_args args)
{
    int64_t heads = args.batch * args.sequence * args.heads;
    int     lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t index = own_warp(); index < heads; index += all_warps()) {
        int64_t token = index / args.heads, head = index % args.heads;
        int64_t place = (token / args.sequence * args.heads + head) * args.sequence + token % args.sequence;
        float   own = args.statistics[place], added = args.part_statistics[place];
        float   keep = 1.0f / (1.0f + expf(added - own)), take = 1.0f / (1.0f + expf(own - added));
        __syncwarp();
        if (lane == 0) {
            args.statistics[place] = fmaxf(own, added) + log1pf(expf(-fabsf(own - added)));
        }
        float       *out  = args.out + index * args.head_dim;
        const float *part = args.part + index * args.head_dim;
        for (int at = lane * width; at < args.head_dim; at += LAUNCH_WARP * width) {
            int           count = packet_elements<is_wide>(at, args.head_dim);
            packet<float> first = fetch<is_wide>(out + at, count), second = fetch<is_wide>(part + at, count);
            float         values[width], others[width];
            unpack(values, first);
            unpack(others, second);
            each([&](int i) { values[i] = keep * values[i] + take * others[i]; });
            store<is_wide>(out + at, values, count);
        }
    }
}
}    // namespace

int kernel_attention_merge(const struct attention_merge_args *args, const struct kernel_target *target)
{
    struct launch launch = launch_warps(args->batch * args->sequence * args->heads, target->multiprocessors);
    return with_flag(launch_is_wide(args->head_dim, addresses(args->out, args->part)),
                     [&](auto wide) { return enqueue(merge_kernel<wide.value>, launch, 0, target, *args); });
}
