// SPDX-License-Identifier: MIT
// Rotates and copies packets of eight elements for the RoPE kernels.
#pragma once

#include "gswbench/arithmetic.h"

#include "device.cuh"

namespace
{
template <typename T, bool is_wide> __device__ inline void copy(T *to, const T *from, int count)
{
    put<is_wide>(to, fetch<is_wide>(from, count), count);
}

// Rotates the pairs (first[i], second[i]) of two packets. angles: interleaved cosines and sines. direction: 1, or -1 to
// rotate back.
template <bool is_wide>
__device__ inline void turn(float (&first)[LAUNCH_WIDTH], float (&second)[LAUNCH_WIDTH], const float *angles,
                            float direction, int count)
{
    float angle[2][LAUNCH_WIDTH];
    load<is_wide>(angle[0], angles, is_wide ? LAUNCH_WIDTH : min((int)LAUNCH_WIDTH, 2 * count));
    load<is_wide>(angle[1], angles + LAUNCH_WIDTH, is_wide ? LAUNCH_WIDTH : max(0, 2 * count - LAUNCH_WIDTH));
    each([&](int i) {
        const float *pair = &angle[2 * i / LAUNCH_WIDTH][2 * i % LAUNCH_WIDTH];
        arithmetic_rotate(&first[i], &second[i], pair[0], direction * pair[1]);
    });
}

// Rotates two packets in memory, which are `half` elements apart.
template <typename T, bool is_wide>
__device__ inline void rotate(T *to, const T *from, int half, const float *angles, float direction, int count)
{
    packet<T> raw_first = fetch<is_wide>(from, count), raw_second = fetch<is_wide>(from + half, count);
    float     first[LAUNCH_WIDTH], second[LAUNCH_WIDTH];
    unpack(first, raw_first);
    unpack(second, raw_second);
    turn<is_wide>(first, second, angles, direction, count);
    store<is_wide>(to, first, count);
    store<is_wide>(to + half, second, count);
}
}    // namespace
