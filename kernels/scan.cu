// SPDX-License-Identifier: MIT
// Computes the selective scan of Mamba-2, forward and backward, per head, with a = -exp(decay) and u = dt x:
//
//   S_t   = exp(a dt_t) S_t-1 + u_t B_t^T, out_t = S_t C_t + skip x_t
//   E_t   = d out_t C_t^T + exp(a dt_t+1) E_t+1                      (gradient of S_t)
//   d u_t = E_t B_t, d B_t = E_t^T u_t, d C_t = S_t^T d out_t
//   G_t   = G_t+1 + d out_t . S_t C_t - u_t . d u_t                  (gradient of a dt_t, which affects later outputs)
//
// A thread block handles one head of one sequence and keeps the state S in registers. Backward, repeat_kernel repeats
// the forward pass and computes d C. reverse_kernel then goes from the last position to the first with E and G.
//
// G is a running sum, so its rounding errors accumulate. At the last position t of each chunk, G_t+1 is therefore
// recomputed from the states: exp(a dt_t+1) S_t . E_t+1. The heads of a group share B and C. Their gradients are first
// stored per head in scratch, and pair_kernel adds them in order.
#include "scan.cuh"
#include "sum_parts.cuh"

namespace
{
template <typename T, int each> __global__ void __launch_bounds__(scan_threads) scan_kernel(const scan_args args)
{
    scan_block block             = open_block<T>(args);
    float      state[rows][each] = {};
    for (int64_t first = 0; first < args.shape.sequence; first += tile) {
        int count = (int)launch_minimum(tile, args.shape.sequence - first);
        load_tile<T, false>(block, args, first, count);
        for (int k = 0; k < count; k++) {
            float y[rows];
            advance(state, y, block, k);
#pragma unroll
            for (int r = 0; r < rows; r++) {
                int p = block.warp * rows + r;
                y[r] += p < block.head_dim ? block.skip * block.x[k * block.head_dim + p] : 0.0f;
            }
            store_rows((T *)args.out + token_of(block, args, first + k) * block.inner, y, block);
        }
    }
}

// Offsets in scratch, which holds: d B and d C, each with pair_elements [tokens, heads, state]; d out . (S C) [tokens,
// heads]; at sums_at the gradients of bias, decay and skip per sequence [3, batch, heads]; at states_at the states at
// the ends of chunks [batch, chunks, heads, head_dim, state].
__host__ __device__ inline int64_t pair_elements(const mamba_shape &shape)
{
    return tokens_of(shape) * shape.heads * shape.state;
}
__host__ __device__ inline int64_t sums_at(const mamba_shape &shape)
{
    return 2 * pair_elements(shape) + tokens_of(shape) * shape.heads;
}
__host__ __device__ inline int64_t states_at(const mamba_shape &shape)
{
    return sums_at(shape) + 3 * shape.batch * shape.heads;
}
__host__ __device__ inline int64_t chunks_of(const mamba_shape &shape)
{
    return (shape.sequence - 1) / shape.chunk;    // not counting the last chunk, whose final state is not needed
}

// Returns the address in scratch of the state after this position, or NULL if no chunk ends here or the sequence ends.
__device__ inline float *state_after(const scan_args &args, const scan_block &block, int64_t position)
{
    const mamba_shape &shape = args.shape;
    bool               ends  = (position + 1) % shape.chunk == 0 && position + 1 < shape.sequence;
    int64_t            chunk = block.sequence * chunks_of(shape) + position / shape.chunk;
    return ends ? args.scratch + states_at(shape) + (chunk * shape.heads + block.head) * shape.head_dim * shape.state
                : NULL;
}

template <int each>
__device__ inline void keep_state(float *to, const float (&state)[rows][each], const scan_block &block)
{
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int p = block.warp * rows + r;
#pragma unroll
        for (int e = 0; e < each; e++) {
            int n = block.lane + e * LAUNCH_WARP;
            if (p < block.head_dim && n < block.state) {
                to[p * block.state + n] = state[r][e];
            }
        }
    }
}

// Returns the dot product of a stored state and a gradient, over this warp's rows.
template <int each>
__device__ inline float dot_state(const float *kept, const float (&slope)[rows][each], const scan_block &block)
{
    float sum = 0;
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int p = block.warp * rows + r;
#pragma unroll
        for (int e = 0; e < each; e++) {
            int n = block.lane + e * LAUNCH_WARP;
            sum += p < block.head_dim && n < block.state ? slope[r][e] * kept[p * block.state + n] : 0.0f;
        }
    }
    return warp_sum(sum);
}

// Returns this warp's partial sums at position k of the tile: one per column of S, then at most three dot products.
__device__ inline float *own_part(const scan_block &block, int k)
{
    return block.part + ((k & 1) * block.warps + block.warp) * (block.state + 3);
}

__device__ inline float sum_part(const scan_block &block, int k, int column)
{
    float sum = 0;
    for (int warp = 0; warp < block.warps; warp++) {
        sum += block.part[((k & 1) * block.warps + warp) * (block.state + 3) + column];
    }
    return sum;
}

// Multiplies this warp's rows of a state (S or E) by their factors, and stores the sum of each column.
template <int each>
__device__ inline void put_states(const float (&state)[rows][each], const float *factor, const scan_block &block, int k)
{
#pragma unroll
    for (int e = 0; e < each; e++) {
        int   n   = block.lane + e * LAUNCH_WARP;
        float sum = 0;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            int p = block.warp * rows + r;
            sum += p < block.head_dim ? state[r][e] * factor[k * block.head_dim + p] : 0.0f;
        }
        if (n < block.state) {
            own_part(block, k)[n] = sum;
        }
    }
}

__device__ inline void store_states(float *to, const scan_block &block, int k)
{
    for (int n = threadIdx.x; n < block.state; n += blockDim.x) {
        to[n] = sum_part(block, k, n);
    }
}

// Returns the dot product of one and other (at position k of the tile) over this warp's rows.
__device__ inline float dot_rows(const float (&one)[rows], const float *other, const scan_block &block, int k)
{
    float sum = 0;
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int p = block.warp * rows + r;
        sum += p < block.head_dim ? one[r] * other[k * block.head_dim + p] : 0.0f;
    }
    return sum;
}

template <typename T, int each> __global__ void __launch_bounds__(scan_threads) repeat_kernel(const scan_args args)
{
    scan_block block             = open_block<T>(args);
    float      state[rows][each] = {};
    float     *pairs = args.scratch + pair_elements(args.shape), *products = pairs + pair_elements(args.shape);
    for (int64_t first = 0; first < args.shape.sequence; first += tile) {
        int count = (int)launch_minimum(tile, args.shape.sequence - first);
        load_tile<T, true>(block, args, first, count);
        for (int k = 0; k < count; k++) {
            int64_t at = token_of(block, args, first + k) * args.shape.heads + block.head;
            float   y[rows];
            advance(state, y, block, k);
            put_states(state, block.d, block, k);
            if (float *kept = state_after(args, block, first + k)) {
                keep_state(kept, state, block);
            }
            if (block.lane == 0) {
                own_part(block, k)[block.state] = dot_rows(y, block.d, block, k);
            }
            __syncthreads();
            store_states(pairs + at * block.state, block, k);
            if (threadIdx.x == 0) {
                products[at] = sum_part(block, k, block.state);
            }
        }
    }
}

// Moves E, the gradient of the state, one position back for this warp's rows. d_u = E B is the gradient of u = dt x.
template <int each>
__device__ inline void retreat(float (&slope)[rows][each], float (&d_u)[rows], float keep, const scan_block &block,
                               int k)
{
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int   p = block.warp * rows + r;
        float d = p < block.head_dim ? block.d[k * block.head_dim + p] : 0.0f;
        d_u[r]  = 0;
#pragma unroll
        for (int e = 0; e < each; e++) {
            int n = block.lane + e * LAUNCH_WARP;
            if (n < block.state) {
                slope[r][e] = keep * slope[r][e] + d * block.c[k * block.state + n];
                d_u[r] += slope[r][e] * block.b[k * block.state + n];
            }
        }
        d_u[r] = warp_sum(d_u[r]);
    }
}

// Sums that the first thread of the block carries from position to position: G, and the gradients of the head's
// parameters.
struct head_sums {
    double exponent;    // G: gradient of a dt at the current position
    float  bias, decay, skip;
};

// Stores the gradient of dt at a position, and adds to the gradients of bias, decay and skip. x_u: dot product of x and
// d u.
template <typename T>
__device__ inline void add_position(head_sums &sums, const scan_args &args, const scan_block &block, int64_t token,
                                    int k)
{
    const float *products = args.scratch + 2 * pair_elements(args.shape);
    float        dt = block.dt[k], x_u = sum_part(block, k, block.state);
    sums.exponent += (double)products[token * args.shape.heads + block.head] - (double)(dt * x_u);
    float exponent = (float)sums.exponent;
    float slope    = (block.rate * exponent + x_u) * -expm1f(-dt);    // derivative of softplus: 1 - exp(-softplus)
    sums.bias += slope;
    sums.decay += exponent * dt * block.rate;
    sums.skip += sum_part(block, k, block.state + 1);
    low_precision((T *)args.packed_gradient + token * block.packed + block.inner + block.channels + block.head, slope);
}

template <typename T>
__device__ inline void store_inputs(const scan_args &args, const scan_block &block, float (&d_u)[rows], int64_t token,
                                    int k)
{
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int   p = block.warp * rows + r;
        float d = p < block.head_dim ? block.d[k * block.head_dim + p] : 0.0f;
        d_u[r]  = block.dt[k] * d_u[r] + block.skip * d;
    }
    store_rows((T *)args.convolved_gradient + token * block.channels, d_u, block);
}

template <typename T, int each> __global__ void __launch_bounds__(scan_threads) reverse_kernel(const scan_args args)
{
    scan_block block             = open_block<T>(args);
    float      slope[rows][each] = {}, keep = 0;
    head_sums  sums = {};
    for (int64_t end = args.shape.sequence; end > 0;) {
        int64_t first = (end - 1) / tile * tile;
        int     count = (int)(end - first);
        load_tile<T, true>(block, args, first, count);
        for (int k = count - 1; k >= 0; k--) {
            int64_t      token = token_of(block, args, first + k);
            float        d_u[rows];
            const float *kept = state_after(args, block, first + k);
            float        from = kept != NULL ? keep * dot_state(kept, slope, block) : 0.0f;
            retreat(slope, d_u, keep, block, k);
            keep = expf(block.dt[k] * block.rate);
            put_states(slope, block.x, block, k);
            if (block.lane == 0) {
                float ones[rows];
#pragma unroll
                for (int r = 0; r < rows; r++) {
                    int p   = block.warp * rows + r;
                    ones[r] = p < block.head_dim ? block.d[k * block.head_dim + p] : 0.0f;
                }
                own_part(block, k)[block.state]     = dot_rows(d_u, block.x, block, k);
                own_part(block, k)[block.state + 1] = dot_rows(ones, block.x, block, k);
                own_part(block, k)[block.state + 2] = from;
            }
            __syncthreads();
            float *pairs = args.scratch + (token * args.shape.heads + block.head) * block.state;
            for (int n = threadIdx.x; n < block.state; n += blockDim.x) {
                pairs[n] = block.dt[k] * sum_part(block, k, n);
            }
            if (threadIdx.x == 0) {
                sums.exponent = kept != NULL ? (double)sum_part(block, k, block.state + 2) : sums.exponent;
                add_position<T>(sums, args, block, token, k);
            }
            store_inputs<T>(args, block, d_u, token, k);
        }
        end = first;
    }
    if (threadIdx.x == 0) {
        float  *to  = args.scratch + sums_at(args.shape) + block.sequence * args.shape.heads + block.head;
        int64_t all = args.shape.batch * args.shape.heads;
        to[0]       = sums.bias;
        to[all]     = sums.decay;
        to[2 * all] = sums.skip;
    }
}

// Sums the gradients of B and C over the heads of each group.
template <typename T> __global__ void __launch_bounds__(LAUNCH_THREADS) pair_kernel(const scan_args args)
{
    int64_t state = args.shape.state, half = args.shape.groups * state, each = args.shape.heads / args.shape.groups;
    int64_t count = tokens_of(args.shape) * 2 * half;
    for (int64_t i = own_thread(); i < count; i += all_threads()) {
        int64_t      token = i / (2 * half), column = i % (2 * half), n = column % half;
        const float *from = args.scratch + (column < half ? 0 : pair_elements(args.shape)) +
                            (token * args.shape.heads + n / state * each) * state + n % state;
        float sum = 0;
        for (int64_t head = 0; head < each; head++) {
            sum += from[head * state];
        }
        low_precision((T *)args.convolved_gradient + token * mamba_channels(&args.shape) + mamba_inner(&args.shape) +
                          column,
                      sum);
    }
}

}    // namespace

int kernel_scan(const struct scan_args *args, const struct kernel_target *target)
{
    return with_states(*args, [&](auto type, auto is_small) {
        return enqueue(scan_kernel < decltype(type), is_small.value ? 4 : 8 >, scan_launch(*args),
                       scan_shared_bytes(args->shape), target, *args);
    });
}

int64_t kernel_scan_scratch_bytes(const struct mamba_shape *shape)
{
    int64_t kept = shape->batch * chunks_of(*shape) * shape->heads * shape->head_dim * shape->state;
    return (states_at(*shape) + kept) * (int64_t)sizeof(float);
}

int kernel_scan_backward(const struct scan_args *args, const struct kernel_target *target)
{
    int64_t       pairs  = tokens_of(args->shape) * 2 * args->shape.groups * args->shape.state;
    struct launch launch = scan_launch(*args);
    int           error  = with_states(*args, [&](auto type, auto is_small) {
        using T             = decltype(type);
        constexpr int each  = is_small.value ? 4 : 8;
        int64_t       bytes = scan_shared_bytes(args->shape);
        int           first = enqueue(repeat_kernel<T, each>, launch, bytes, target, *args);
        first = first != 0 ? first : enqueue(reverse_kernel<T, each>, launch, bytes, target, *args);
        return first != 0 ? first
                                     : enqueue(pair_kernel<T>, launch_items(pairs, target->multiprocessors), 0, target, *args);
    });
    const float  *sums   = args->scratch + sums_at(args->shape);
    void *const   to[3]  = {args->step_bias_gradient, args->decay_gradient, args->skip_gradient};
    for (int i = 0; i < 3; i++) {
        error = enqueue_sum_after(error, args, sums + i * args->shape.batch * args->shape.heads, args->shape.batch,
                                  args->shape.heads, to[i], target);
    }
    return error;
}
