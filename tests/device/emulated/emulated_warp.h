// SPDX-License-Identifier: MIT
// Barriers, shuffles and votes of a block's threads, which are fibers.
#ifndef GSWBENCH_TESTS_EMULATED_WARP_H
#define GSWBENCH_TESTS_EMULATED_WARP_H

#include "emulator.h"

static inline void __syncthreads(void)
{
    emulator::wait_block(false);
}
static inline int __syncthreads_count(int vote)
{
    return emulator::wait_block(vote != 0);
}
static inline int __syncthreads_or(int vote)
{
    return emulator::wait_block(vote != 0) > 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emulator::wait_warp(mask);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32)
{
    int lane = emulator::lane(), other = lane ^ distance;
    return emulator::from_lane(mask, value, other / width == lane / width ? other : lane);
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    int lane = emulator::lane();
    return emulator::from_lane(mask, value, lane / width * width + from % width);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    int lane = emulator::lane(), other = lane - (int)distance;
    return emulator::from_lane(mask, value, other >= lane / width * width ? other : lane);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    int lane = emulator::lane(), other = lane + (int)distance;
    return emulator::from_lane(mask, value, other < lane / width * width + width ? other : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int is_true)
{
    unsigned words[emulator::WARP], result = 0;
    unsigned own = is_true != 0;
    emulator::gather(mask, own, words);
    for (int i = 0; i < emulator::WARP; i++) {
        result |= words[i] << i;
    }
    return result;
}
static inline int __any_sync(unsigned mask, int is_true)
{
    return __ballot_sync(mask, is_true) != 0;
}
static inline int __all_sync(unsigned mask, int is_true)
{
    return __ballot_sync(mask, is_true) == mask;
}
static inline unsigned __match_any_sync(unsigned mask, unsigned value)
{
    unsigned words[emulator::WARP], result = 0;
    emulator::gather(mask, value, words);
    for (int i = 0; i < emulator::WARP; i++) {
        result |= (unsigned)((mask >> i & 1u) != 0 && words[i] == value) << i;
    }
    return result;
}

#endif
