// SPDX-License-Identifier: MIT
// Defines grid-stride access to flat arrays of any type.
#pragma once

#include "device.cuh"

// Position of a thread in a flat array. A thread handles eight elements (a packet) at a time: a run of four, and the
// run STRIDE elements after it. Adjacent threads have adjacent runs, so each access of a warp uses whole memory sectors
// for every type.
struct spread {
    enum { RUN = LAUNCH_WIDTH / 2, STRIDE = RUN * LAUNCH_WARP };
    int64_t at, total;    // first element of the packet; size of the array

    // Starts at the first packet of this thread; advance moves to its next one.
    __device__ spread(int64_t elements)
        : at(((int64_t)blockIdx.x * blockDim.x + threadIdx.x / LAUNCH_WARP * LAUNCH_WARP) * LAUNCH_WIDTH +
             threadIdx.x % LAUNCH_WARP * RUN),
          total(elements)
    {
    }
    __device__ void advance()
    {
        at += (int64_t)gridDim.x * blockDim.x * LAUNCH_WIDTH;
    }
    __device__ bool is_here() const
    {
        return at < total;
    }
    __device__ bool is_whole() const
    {
        return at + STRIDE + RUN <= total;
    }
    __device__ int64_t element(int i) const
    {
        return at + i / RUN * STRIDE + i % RUN;
    }
};

// read_run copies a run of four elements from memory to one half of a packet; write_run copies it back.
static __device__ inline void read_run(packet<float> *to, int half, const float *from)
{
    to->word[half] = *reinterpret_cast<const uint4 *>(from);
}
static __device__ inline void read_run(packet<bf16> *to, int half, const bf16 *from)
{
    uint2 words                             = *reinterpret_cast<const uint2 *>(from);
    (half == 0 ? to->word->x : to->word->z) = words.x;
    (half == 0 ? to->word->y : to->word->w) = words.y;
}
static __device__ inline void write_run(float *to, const packet<float> &from, int half)
{
    *reinterpret_cast<uint4 *>(to) = from.word[half];
}
static __device__ inline void write_run(bf16 *to, const packet<bf16> &from, int half)
{
    const uint4 &word              = *from.word;
    *reinterpret_cast<uint2 *>(to) = half == 0 ? make_uint2(word.x, word.y) : make_uint2(word.z, word.w);
}

template <bool is_wide, typename T> static __device__ inline packet<T> fetch(const T *array, const spread &its)
{
    if (is_wide && its.is_whole()) {
        packet<T> to;
        each<2>([&](int half) { read_run(&to, half, array + its.element(half * spread::RUN)); });
        return to;
    }
    float values[LAUNCH_WIDTH];
    each([&](int i) { values[i] = its.element(i) < its.total ? widen(array[its.element(i)]) : 0.0f; });
    return pack<T>(values);
}

template <bool is_wide, typename T>
static __device__ inline void load(float (&values)[LAUNCH_WIDTH], const T *array, const spread &its)
{
    unpack(values, fetch<is_wide>(array, its));
}

template <bool is_wide, typename T>
static __device__ inline void store(T *array, const float (&values)[LAUNCH_WIDTH], const spread &its)
{
    if (is_wide && its.is_whole()) {
        packet<T> from = pack<T>(values);
        each<2>([&](int half) { write_run(array + its.element(half * spread::RUN), from, half); });
        return;
    }
    each([&](int i) {
        if (its.element(i) < its.total) {
            low_precision(array + its.element(i), values[i]);
        }
    });
}
