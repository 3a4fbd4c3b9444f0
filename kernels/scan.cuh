// SPDX-License-Identifier: MIT
// Defines code that the scan kernels share. A thread block handles one head of one sequence. Each warp has `rows`
// elements of the head, and each lane every 32nd state of these elements. Positions are loaded to shared memory in
// tiles.
#pragma once

#include "mamba.cuh"

namespace
{
constexpr int rows = 8, tile = 8, scan_threads = SCAN_HEAD_MAX / rows * LAUNCH_WARP;

struct scan_block {
    int64_t sequence, head, group, inner, channels, packed;
    int     head_dim, state, warps, warp, lane;
    float   rate, bias, skip;             // a = -exp(decay); bias of dt; factor of x in the output
    float  *b, *c, *x, *d, *dt, *part;    // in shared memory: B, C, x, d out and dt of a tile; partial sums
};

__host__ __device__ inline int warps_of(const mamba_shape &shape)
{
    return (int)launch_groups(shape.head_dim, rows);
}

// Returns the number of partial sums of a warp at one position: one per state, and at most three dot products. Each
// warp has two rows of partial sums, for even and odd positions.
__host__ __device__ inline int64_t part_width(const mamba_shape &shape)
{
    return shape.state + 3;
}

inline int64_t scan_shared_bytes(const mamba_shape &shape)
{
    int64_t positions = tile * (2 * shape.state + 2 * shape.head_dim + 1);
    return (positions + 2 * warps_of(shape) * part_width(shape)) * (int64_t)sizeof(float);
}

template <typename T> __device__ inline scan_block open_block(const scan_args &args)
{
    const mamba_shape &shape = args.shape;
    scan_block         block;
    block.sequence = blockIdx.x / shape.heads;
    block.head     = blockIdx.x % shape.heads;
    block.group    = block.head / (shape.heads / shape.groups);
    block.inner    = mamba_inner(&shape);
    block.channels = mamba_channels(&shape);
    block.packed   = mamba_packed(&shape);
    block.head_dim = (int)shape.head_dim;
    block.state    = (int)shape.state;
    block.warps    = warps_of(shape);
    block.warp     = threadIdx.x / LAUNCH_WARP;
    block.lane     = threadIdx.x % LAUNCH_WARP;
    block.rate     = -expf(widen(((const T *)args.decay)[block.head]));
    block.bias     = widen(((const T *)args.step_bias)[block.head]);
    block.skip     = widen(((const T *)args.skip)[block.head]);
    block.b        = dynamic_shared<float>();
    block.c        = block.b + tile * block.state;
    block.x        = block.c + tile * block.state;
    block.d        = block.x + tile * block.head_dim;
    block.dt       = block.d + tile * block.head_dim;
    block.part     = block.dt + tile;
    return block;
}

__device__ inline int64_t token_of(const scan_block &block, const scan_args &args, int64_t position)
{
    return block.sequence * args.shape.sequence + position;
}

// Loads B, C, x and dt of `count` positions, the first at `first`, to shared memory; also d out if has_gradient.
template <typename T, bool has_gradient>
__device__ inline void load_tile(const scan_block &block, const scan_args &args, int64_t first, int count)
{
    const T *convolved = (const T *)args.convolved, *packed = (const T *)args.packed;
    int64_t  pairs = block.inner + block.group * block.state, half = args.shape.groups * block.state;
    __syncthreads();    // all threads have read the previous tile
    for (int i = threadIdx.x; i < count * block.state; i += blockDim.x) {
        const T *row = convolved + token_of(block, args, first + i / block.state) * block.channels + pairs;
        block.b[i]   = widen(row[i % block.state]);
        block.c[i]   = widen(row[half + i % block.state]);
    }
    for (int i = threadIdx.x; i < count * block.head_dim; i += blockDim.x) {
        int64_t token = token_of(block, args, first + i / block.head_dim);
        int64_t at    = block.head * block.head_dim + i % block.head_dim;
        block.x[i]    = widen(convolved[token * block.channels + at]);
        if (has_gradient) {
            block.d[i] = widen(((const T *)args.gradient)[token * block.inner + at]);
        }
    }
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        int64_t at  = token_of(block, args, first + i) * block.packed + block.inner + block.channels + block.head;
        float   dt  = widen(packed[at]) + block.bias;
        block.dt[i] = fmaxf(dt, 0.0f) + log1pf(expf(-fabsf(dt)));
    }
    __syncthreads();
}

// Advances the state of this warp's rows by position k. Sets y on all lanes: per row, the dot product of state and c.
template <int each>
__device__ inline void advance(float (&state)[rows][each], float (&y)[rows], const scan_block &block, int k)
{
    float keep = expf(block.dt[k] * block.rate);
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int   p = block.warp * rows + r;
        float u = p < block.head_dim ? block.dt[k] * block.x[k * block.head_dim + p] : 0.0f;
        y[r]    = 0;
#pragma unroll
        for (int e = 0; e < each; e++) {
            int n = block.lane + e * LAUNCH_WARP;
            if (n < block.state) {
                state[r][e] = keep * state[r][e] + u * block.b[k * block.state + n];
                y[r] += state[r][e] * block.c[k * block.state + n];
            }
        }
        y[r] = warp_sum(y[r]);
    }
}

// Stores the values of this warp's rows in the output or in the gradient of x. Lane r stores values[r].
template <typename T> __device__ inline void store_rows(T *to, const float (&values)[rows], const scan_block &block)
{
#pragma unroll
    for (int r = 0; r < rows; r++) {
        int p = block.warp * rows + r;
        if (block.lane == r && p < block.head_dim) {
            low_precision(to + block.head * block.head_dim + p, values[r]);
        }
    }
}

template <typename Body> static int with_states(const scan_args &args, Body body)
{
    return with_type(args.type, [&](auto type) {
        return with_flag(args.shape.state <= 4 * LAUNCH_WARP, [&](auto is_small) { return body(type, is_small); });
    });
}

inline launch scan_launch(const scan_args &args)
{
    return {(uint32_t)(args.shape.batch * args.shape.heads), (uint32_t)(warps_of(args.shape) * LAUNCH_WARP)};
}
}    // namespace
