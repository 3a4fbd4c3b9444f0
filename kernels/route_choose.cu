// SPDX-License-Identifier: MIT
// Computes the top-k selection of the router: each row selects the experts with the largest score, or score plus bias.
// With expert groups, it selects only from the top groups. One warp handles one row. If several ranks share the
// capacity of an expert, each selects the experts for the rows of all these ranks, so that all drop the same choices.
#include "route.h"
#include "route_scores.cuh"

namespace
{
constexpr unsigned all_lanes = 0xffffffffu;

// Selection keys of a row: the values that experts are ranked by. by_logits: ranks by logits instead of softmax scores.
// Both give the same order, but logits also separate experts whose scores round to the same value.
struct row_keys {
    const float *logits, *bias;    // bias may be NULL
    row_scores   scores;
    bool         by_logits;
};

__device__ inline float key_of(const row_keys &row, int64_t expert)
{
    if (row.by_logits) {
        return row.logits[expert];
    }
    return score(row.scores, row.logits[expert]) + (row.bias != NULL ? row.bias[expert] : 0.0f);
}

// Returns the expert with the largest key that is not chosen yet; of equal ones, the lowest. chosen: one bit for each
// expert of this lane.
__device__ inline int choose_next(const row_keys &keys, int experts, unsigned *chosen)
{
    int   lane = threadIdx.x % LAUNCH_WARP, best = -1;
    float largest = -INFINITY;
    for (int i = 0, expert = lane; expert < experts; i++, expert += LAUNCH_WARP) {
        float key = (*chosen >> i & 1) == 0 ? key_of(keys, expert) : -INFINITY;
        if ((*chosen >> i & 1) == 0 && (best < 0 || key > largest)) {
            best    = expert;
            largest = key;
        }
    }
#pragma unroll
    for (int distance = LAUNCH_WARP / 2; distance > 0; distance /= 2) {
        int   other     = __shfl_xor_sync(all_lanes, best, distance);
        float other_key = __shfl_xor_sync(all_lanes, largest, distance);
        if (other >= 0 && (best < 0 || other_key > largest || (other_key == largest && other < best))) {
            best    = other;
            largest = other_key;
        }
    }
    best = __shfl_sync(all_lanes, best, 0);    // if a logit is NaN, lanes may differ; all use lane 0's
    if (best % LAUNCH_WARP == lane) {
        *chosen |= 1u << (best / LAUNCH_WARP);
    }
    return best;
}

// Returns the score of an expert group on every lane. The score is the sum of its two largest selection keys.
__device__ inline float best_of_group(const row_keys &keys, int64_t first, int64_t experts)
{
    float largest = -INFINITY, second = -INFINITY;
    for (int64_t i = threadIdx.x % LAUNCH_WARP; i < experts; i += LAUNCH_WARP) {
        float key = key_of(keys, first + i);
        second    = fmaxf(second, fminf(largest, key));
        largest   = fmaxf(largest, key);
    }
#pragma unroll
    for (int distance = LAUNCH_WARP / 2; distance > 0; distance /= 2) {
        float other = __shfl_xor_sync(all_lanes, largest, distance);
        second      = fmaxf(fmaxf(second, __shfl_xor_sync(all_lanes, second, distance)), fminf(largest, other));
        largest     = fmaxf(largest, other);
    }
    return largest + (experts > 1 ? second : 0.0f);
}

// Returns a bit mask of the top_groups groups with the highest scores; the lower index wins a tie.
__device__ inline unsigned choose_groups(const struct routing_shape &shape, const row_keys &keys)
{
    int     lane = threadIdx.x % LAUNCH_WARP, better = 0;
    int64_t experts = shape.experts / shape.groups;
    float   own     = -INFINITY;
    for (int group = 0; group < shape.groups; group++) {
        float sum = best_of_group(keys, group * experts, experts);
        own       = group == lane ? sum : own;
    }
    for (int group = 0; group < shape.groups; group++) {
        float sum = __shfl_sync(all_lanes, own, group);
        better += sum > own || (sum == own && group < lane);
    }
    return __ballot_sync(all_lanes, lane < shape.groups && better < shape.top_groups);
}

// Returns a bit mask of this lane's experts outside the top groups. choose_next skips them, as if already chosen.
__device__ inline unsigned leave_groups(const struct routing_shape &shape, const row_keys &keys)
{
    if (shape.groups == 0) {
        return 0;
    }
    unsigned groups = choose_groups(shape, keys), left = 0;
    int64_t  experts = shape.experts / shape.groups;
    for (int64_t i = 0, expert = threadIdx.x % LAUNCH_WARP; expert < shape.experts; i++, expert += LAUNCH_WARP) {
        left |= (groups >> (expert / experts) & 1) == 0 ? 1u << i : 0;
    }
    return left;
}

__global__ void __launch_bounds__(LAUNCH_THREADS)
    choose_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    const struct routing_shape &shape      = args.shape;
    bool                        by_sigmoid = shape.score == ROUTER_SIGMOID;
    bool                        by_logits  = !by_sigmoid && args.bias == NULL && shape.groups == 0;
    for (int64_t row = own_warp(); row < shape.total; row += all_warps()) {
        const float *logits = args.logits + row * shape.experts;
        row_keys     keys   = {logits, args.bias, scores_of(logits, shape.experts, by_sigmoid), by_logits};
        unsigned     chosen = shape.balanced ? 0 : leave_groups(shape, keys);
        for (int64_t j = 0; j < shape.top_k; j++) {
            int64_t choice = row * shape.top_k + j;
            int     expert = shape.balanced ? (int)arithmetic_assign(row, j, shape.top_k, shape.experts, shape.hot)
                                            : choose_next(keys, (int)shape.experts, &chosen);
            if (threadIdx.x % LAUNCH_WARP == 0) {
                scratch.experts[choice]       = expert;
                scratch.probabilities[choice] = probability(keys.scores, logits[expert]);
            }
        }
        if (route_is_chosen_apart(&shape, args.bias)) {
            keys.by_logits = true;
            chosen         = 0;
            for (int64_t j = 0; j < shape.top_k; j++) {
                int expert = choose_next(keys, (int)shape.experts, &chosen);
                if (threadIdx.x % LAUNCH_WARP == 0) {
                    scratch.scored[row * shape.top_k + j] = expert;
                }
            }
        }
    }
}
}    // namespace

int kernel_route_choose(const struct route_forward_args *args, const struct kernel_target *target)
{
    struct route_scratch scratch = route_scratch_at(args->scratch, &args->shape);
    struct launch        launch  = launch_warps(args->shape.total, target->multiprocessors);
    return enqueue(choose_kernel, launch, 0, target, *args, scratch);
}
