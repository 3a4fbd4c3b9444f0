// SPDX-License-Identifier: MIT
// Defines code that the norm kernels share: the packets (eight elements) of a row that a thread holds in registers, and
// a block's partial sums of the weight gradient.
#pragma once

#include "norm.h"
#include "quantize.cuh"

namespace
{
constexpr int held = NORM_HELD / width;    // maximum packets per thread

// First element and number of elements of a thread's packet. is_here: whether the packet is within the row.
struct place {
    int  at, count;
    bool is_here;
};

template <bool is_wide> __device__ inline place place_of(int i, int64_t columns)
{
    int thread = (int)threadIdx.x;
    asm volatile("" : "+r"(thread));    // forces recomputation: stored indices would take registers
    int at = (thread + i * (int)blockDim.x) * width;
    return {at, packet_elements<is_wide>(at, columns), at < columns};
}

template <typename T> struct gradient_row {
    packet<T> gradient[held], x[held];
    packet<T> residual[held];    // loaded with gradient and x if registers suffice
    float     mean, inverse;
};

struct gradient_values {
    float gradient[width], normalised[width], product[width];
};

// Partial sums of the weight gradient in registers: of[i][j] belongs to element j of the thread's packet i.
struct register_sums {
    float of[held][width];

    __device__ explicit register_sums(int64_t)
    {
        each<held>([&](int i) { fill(of[i], 0); });
    }
    __device__ void add(int i, int j, const place &, const gradient_values &values)
    {
        of[i][j] += values.gradient[j] * values.normalised[j];
    }
    __device__ void write(float *to, int64_t columns) const
    {
        each<held>([&](int i) {
            place here = place_of<true>(i, columns);
            if (here.is_here) {
                store<true>(to + here.at, of[i]);
            }
        });
    }
};

// Partial sums of the weight gradient, and of the bias gradient if there is a bias, in shared memory. Element j of
// packet c is at j * packets + c, so that adjacent threads access different banks. Each packet belongs to one thread.
template <bool is_wide, bool has_bias> struct shared_sums {
    float *of;
    int    packets;

    __device__ explicit shared_sums(int64_t columns)
        : of(dynamic_shared<float>()), packets((int)launch_groups(columns, width))
    {
        for (int i = threadIdx.x; i < packets; i += blockDim.x) {
            each<(has_bias ? 2 : 1) * width>([&](int j) { of[j * packets + i] = 0; });
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
