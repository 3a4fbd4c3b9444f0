// SPDX-License-Identifier: MIT
// Routes tokens to experts after the top-k selection (route_choose.cu), with these kernels in order. A choice is one of
// a token's top-k experts; a slot is a row of the buffer that experts read.
//
//   drop_kernel          one block per expert and sequence: counts choices, and drops those beyond the capacity
//   token_count_kernel   one block per expert, dropless only: counts the rows of the expert
//   place_kernel         one block per expert: assigns slots to its choices in row order
//   gate_kernel          one warp per row: gates and auxiliary loss
//   total_kernel         one block: sums dropped choices and auxiliary losses
#include <assert.h>

#include "route.h"
#include "route_scores.cuh"

namespace
{
constexpr int      expert_threads = 512;
constexpr unsigned all_lanes      = 0xffffffffu;

// Computes the prefix sum of a flag over the block: returns the number of earlier threads with the flag set. *total is
// the number in the whole block. All threads must call it.
__device__ inline int rank_in_block(bool flag, int *total)
{
    __shared__ int counts[LAUNCH_WARP];
    int            lane = threadIdx.x % LAUNCH_WARP, warp = threadIdx.x / LAUNCH_WARP;
    unsigned       flags = __ballot_sync(all_lanes, flag);
    __syncthreads();    // all threads have read the counts of the previous call
    if (lane == 0) {
        counts[warp] = __popc(flags);
    }
    __syncthreads();
    int before = __popc(flags & ((1u << lane) - 1));
    *total     = 0;
    for (int i = 0; i < (int)blockDim.x / LAUNCH_WARP; i++) {
        before += i < warp ? counts[i] : 0;
        *total += counts[i];
    }
    return before;
}

// Lists the choices of one expert in one sequence in row order, and returns their number.
__device__ inline int list_candidates(const struct route_forward_args &args, const struct route_scratch &scratch,
                                      int64_t sequence, int expert, struct route_candidate *candidates)
{
    int64_t choices = args.shape.total / args.shape.sequences * args.shape.top_k;
    int     count   = 0;
    for (int64_t begin = 0; begin < choices; begin += blockDim.x) {
        int64_t n      = begin + threadIdx.x;
        int64_t choice = n < choices ? route_choice(&args.shape, sequence, n) : 0;
        bool    is_own = n < choices && scratch.experts[choice] == expert;
        int     total, before = rank_in_block(is_own, &total);
        if (is_own) {
            candidates[count + before] = {__float_as_uint(scratch.probabilities[choice]), (int32_t)choice};
        }
        count += total;
    }
    return count;
}

__device__ inline int count_from(const struct route_candidate *candidates, int count, uint32_t probability_bits)
{
    int reaching = 0;
    for (int begin = 0; begin < count; begin += blockDim.x) {
        int i = begin + threadIdx.x;
        reaching += __syncthreads_count(i < count && candidates[i].probability_bits >= probability_bits);
    }
    return reaching;
}

// Drops all but the `taken` most probable candidates; of equal ones, the first are kept. A binary search over the bits
// of the probability finds the threshold: the largest value that at least `taken` candidates reach.
__device__ inline void drop_least_probable(const struct route_candidate *candidates, int count, int taken,
                                           float *probabilities)
{
    uint32_t last = 0;
    for (uint32_t bit = 1u << 30; bit > 0; bit >>= 1) {
        last |= count_from(candidates, count, last | bit) >= taken ? bit : 0;
    }
    int equal_taken = taken - count_from(candidates, count, last + 1), equal = 0;
    for (int begin = 0; begin < count; begin += blockDim.x) {
        int                    i         = begin + threadIdx.x;
        struct route_candidate candidate = i < count ? candidates[i] : route_candidate{0xffffffffu, 0};
        int                    total, before = rank_in_block(candidate.probability_bits == last, &total);
        if (candidate.probability_bits < last ||
            (candidate.probability_bits == last && equal + before >= equal_taken)) {
            probabilities[candidate.choice] = -1.0f;
        }
        equal += total;
    }
}

// Returns the number of rows of a sequence that have this expert in their top-k by score alone, without bias and
// groups.
__device__ inline int count_scored(const struct route_forward_args &args, const struct route_scratch &scratch,
                                   int64_t sequence, int expert)
{
    int64_t choices = args.shape.total / args.shape.sequences * args.shape.top_k;
    int     count   = 0;
    for (int64_t n = threadIdx.x; n < choices; n += blockDim.x) {
        count += scratch.scored[route_choice(&args.shape, sequence, n)] == expert;
    }
    return block_sum(count);
}

// Counts the choices of one expert in one sequence, and drops the least probable ones beyond its capacity. Each block
// handles one expert of one sequence, so that no two blocks write the same choice.
__global__ void __launch_bounds__(expert_threads)
    drop_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    int64_t                 rows = args.shape.total / args.shape.sequences, sequence = blockIdx.x / args.shape.experts;
    int                     expert     = (int)(blockIdx.x % args.shape.experts);
    struct route_candidate *candidates = scratch.candidates + blockIdx.x * rows;
    int                     count      = list_candidates(args, scratch, sequence, expert, candidates);
    int counted = route_is_chosen_apart(&args.shape, args.bias) ? count_scored(args, scratch, sequence, expert) : count;
    __syncthreads();    // the list is complete
    if (threadIdx.x == 0) {
        args.counts[blockIdx.x] = (float)counted;
    }
    if (count > args.shape.taken) {
        drop_least_probable(candidates, count, (int)args.shape.taken, scratch.probabilities);
    }
}

// Without capacity (dropless): counts the rows of each expert, rounded up to the padding multiple. One block per
// expert.
__global__ void __launch_bounds__(expert_threads)
    token_count_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    int64_t first = args.shape.first * args.shape.top_k, end = first + args.shape.rows * args.shape.top_k;
    int     count = 0;
    for (int64_t choice = first + threadIdx.x; choice < end; choice += blockDim.x) {
        count += scratch.experts[choice] == (int)blockIdx.x && scratch.probabilities[choice] >= 0;
    }
    count = block_sum(count);
    if (threadIdx.x == 0) {
        int multiple                  = (int)args.shape.multiple;
        args.token_counts[blockIdx.x] = (count + multiple - 1) / multiple * multiple;
    }
}

// Returns the first slot of an expert and sets *end to the end of its slots. In dropless mode the last expert's range
// also includes the unused slots at the end of the buffer.
__device__ inline int64_t find_slots(const struct route_forward_args &args, int64_t expert, int64_t *end)
{
    const struct routing_shape &shape = args.shape;
    int64_t                     place = route_place(shape.experts, shape.owners, expert);
    if (shape.multiple == 0) {
        *end = (place + 1) * shape.capacity;
        return place * shape.capacity;
    }
    int before = 0;
    for (int64_t i = threadIdx.x; i < place; i += blockDim.x) {
        before += args.token_counts[route_expert_at(shape.experts, shape.owners, i)];
    }
    before = block_sum(before);
    *end   = place == shape.experts - 1 ? args.slot_count : before + args.token_counts[expert];
    return before;
}

// Assigns slots to the choices of one expert in row order; one block per expert. A dropped choice gets slot -1, and an
// empty slot gets source -1.
__global__ void __launch_bounds__(expert_threads)
    place_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    int64_t  expert = blockIdx.x, own = args.shape.first * args.shape.top_k;
    int64_t  choices = args.shape.rows * args.shape.top_k, end, begin = find_slots(args, expert, &end);
    int32_t *sources = args.sources + begin;
    int      count = 0, dropped = 0;
    for (int64_t tile = 0; tile < choices; tile += blockDim.x) {
        int64_t choice   = tile + threadIdx.x;
        bool    is_own   = choice < choices && scratch.experts[own + choice] == expert;
        bool    is_taken = is_own && scratch.probabilities[own + choice] >= 0;
        int     total, place = count - dropped + rank_in_block(is_taken, &total);
        if (is_taken) {
            assert(begin + place < end);
            sources[place]     = (int32_t)choice;
            args.slots[choice] = (int32_t)(begin + place);
        } else if (is_own) {
            args.slots[choice] = -1;
        }
        int own_total = __syncthreads_count(is_own);
        count += own_total;
        dropped += own_total - total;
    }
    for (int64_t place = count - dropped + threadIdx.x; place < end - begin; place += blockDim.x) {
        sources[place] = -1;
    }
    if (threadIdx.x == 0) {
        scratch.dropped[expert] = dropped;
        if (args.statistics != NULL) {
            args.statistics[expert] = (float)count + (args.accumulates ? args.statistics[expert] : 0.0f);
        }
    }
}

// Parameters of a row's gates. The gate of an expert is scale * score(scores, logit). Each lane computes only the gates
// that it needs.
struct row_gates {
    row_scores scores;
    float      scale;
};

// Finds the gate parameters of a row. Unless shape.is_absolute, gates are divided by the sum of the chosen scores.
// Softmax scores then become a softmax over the chosen logits, so the maximum is taken over these logits only.
__device__ inline row_gates gates_of(const struct routing_shape &shape, const row_scores &scores, const float *logits,
                                     const int32_t *experts)
{
    int   lane    = threadIdx.x % LAUNCH_WARP;
    float maximum = -INFINITY, sum = 0;
    if (shape.is_absolute) {
        return {scores, shape.scale};
    }
    for (int64_t j = lane; j < shape.top_k; j += LAUNCH_WARP) {
        maximum = fmaxf(maximum, logits[experts[j]]);
    }
    row_scores chosen = {warp_maximum(maximum), 1.0f, shape.score == ROUTER_SIGMOID};
    for (int64_t j = lane; j < shape.top_k; j += LAUNCH_WARP) {
        sum += score(chosen, logits[experts[j]]);
    }
    return {chosen, shape.scale / warp_sum(sum)};
}

__global__ void __launch_bounds__(LAUNCH_THREADS)
    gate_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    const struct routing_shape &shape = args.shape;
    int                         lane  = threadIdx.x % LAUNCH_WARP;
    for (int64_t row = own_warp(); row < shape.rows; row += all_warps()) {
        const float   *logits  = args.logits + (shape.first + row) * shape.experts;
        const int32_t *experts = scratch.experts + (shape.first + row) * shape.top_k;
        row_scores     scores  = scores_of(logits, shape.experts, shape.score == ROUTER_SIGMOID);
        row_gates      gates   = gates_of(shape, scores, logits, experts);
        for (int64_t j = lane; j < shape.top_k; j += LAUNCH_WARP) {
            args.choices[row * shape.top_k + j] = experts[j];
            args.gates[row * shape.top_k + j]   = score(gates.scores, logits[experts[j]]) * gates.scale;
        }
        const float *counts  = args.counts + route_sequence(&shape, shape.first + row) * shape.experts;
        float        product = 0;
        for (int64_t expert = lane; expert < shape.experts; expert += LAUNCH_WARP) {
            product += counts[expert] * probability(scores, logits[expert]);
        }
        product = warp_sum(product);
        if (lane == 0) {
            scratch.auxiliary[row] = args.auxiliary_scale * product;
        }
    }
}

__global__ void __launch_bounds__(LAUNCH_THREADS)
    total_kernel(const struct route_forward_args args, const struct route_scratch scratch)
{
    double totals[2] = {};
    for (int64_t expert = threadIdx.x; expert < args.shape.experts; expert += blockDim.x) {
        totals[0] += scratch.dropped[expert];
    }
    for (int64_t row = threadIdx.x; row < args.shape.rows; row += blockDim.x) {
        totals[1] += (double)scratch.auxiliary[row];
    }
    block_sum(totals);
    if (threadIdx.x == 0) {
        float *to = args.statistics + args.shape.experts;
        to[0]     = (float)(totals[0] + (args.accumulates ? (double)to[0] : 0));
        to[1]     = (float)(totals[1] + (args.accumulates ? (double)to[1] : 0));
    }
}
}    // namespace

int kernel_route_forward(const struct route_forward_args *args, const struct kernel_target *target)
{
    const struct routing_shape *shape   = &args->shape;
    struct route_scratch        scratch = route_scratch_at(args->scratch, shape);
    struct launch               own     = launch_warps(shape->rows, target->multiprocessors);
    struct launch               lists   = {(uint32_t)(shape->sequences * shape->experts), expert_threads};
    struct launch               experts = {(uint32_t)shape->experts, expert_threads}, one = {1, LAUNCH_THREADS};
    const int                   errors[] = {kernel_route_choose(args, target),
                                            enqueue(drop_kernel, lists, 0, target, *args, scratch),
                          shape->multiple == 0 ? 0 : enqueue(token_count_kernel, experts, 0, target, *args, scratch),
                                            enqueue(place_kernel, experts, 0, target, *args, scratch),
                                            enqueue(gate_kernel, own, 0, target, *args, scratch),
                          args->statistics == NULL ? 0 : enqueue(total_kernel, one, 0, target, *args, scratch)};
    for (int error : errors) {
        if (error != 0) {
            return error;
        }
    }
    return 0;
}
