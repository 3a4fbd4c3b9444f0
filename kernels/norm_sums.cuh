// SPDX-License-Identifier: MIT
// The gradients of a norm's weights over the rows of a block, while it walks them.
#ifndef GSWBENCH_KERNELS_NORM_SUMS_CUH
#define GSWBENCH_KERNELS_NORM_SUMS_CUH

#include "norm_row.cuh"

namespace
{
// What a thread knows of its row in the backward pass.
template <typename T> struct gradient_row {
    packet<T> gradient[held], x[held];
    packet<T> residual[held];    // where registers are many enough to fetch it with the others
    float     mean, inverse;
};

// Element j of a packet: what the norm's own gradient is a function of.
struct gradient_values {
    float gradient[width], normalised[width], product[width];
};

// The gradients of the weights over a block's rows, as its threads hold them: element j of a thread's packet i.
struct register_sums {
    float of[held][width];

    __device__ explicit register_sums(int64_t)
    {
#pragma unroll
        for (int i = 0; i < held; i++) {
            fill(of[i], 0);
        }
    }
    __device__ void add(int i, int j, const place &, const gradient_values &values)
    {
        of[i][j] += values.gradient[j] * values.normalised[j];
    }
    __device__ void write(float *to, int64_t columns) const
    {
#pragma unroll
        for (int i = 0; i < held; i++) {
            place here = place_of<true>(i, columns);
            if (here.is_here) {
                store<true>(to + here.at, of[i]);
            }
        }
    }
};

// In shared memory, with those of the bias behind them, if any. Element j of packet c is at j * packets + c, so that
// neighbouring threads meet different banks. No other thread touches a thread's packets.
template <bool is_wide, bool has_bias> struct shared_sums {
    float *of;
    int    packets;

    __device__ explicit shared_sums(int64_t columns)
        : of(dynamic_shared<float>()), packets((int)launch_groups(columns, width))
    {
        for (int i = threadIdx.x; i < packets; i += blockDim.x) {
#pragma unroll
            for (int j = 0; j < (has_bias ? 2 : 1) * width; j++) {
                of[j * packets + i] = 0;
            }
        }
    }
    __device__ void add(int, int j, const place &here, const gradient_values &values)
    {
        float *sum = of + j * packets + here.at / width;
        *sum += values.gradient[j] * values.normalised[j];
        if (has_bias) {
            sum[width * packets] += values.gradient[j];
        }
    }
    __device__ void write(float *to, int64_t columns) const
    {
        for (int i = threadIdx.x; i < packets; i += blockDim.x) {
            int count = packet_elements<is_wide>(i * width, columns);
            for (int j = 0; j < count; j++) {
                to[i * width + j] = of[j * packets + i];
                if (has_bias) {
                    to[columns + i * width + j] = of[(width + j) * packets + i];
                }
            }
        }
    }
};
}    // namespace

#endif
