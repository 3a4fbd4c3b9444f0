// SPDX-License-Identifier: MIT
// Computes counter-based random numbers for weights and tokens. A value depends only on its key and index, so every
// layout draws the same numbers. Integer arithmetic makes them identical on all machines. Compiles as C and as CUDA.
#pragma once

#include <stdint.h>

#include "gswbench/format.h"

struct random_block {
    uint32_t word[4];
};

// Computes Philox-4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
GSWBENCH_INLINE struct random_block random_philox(uint64_t key, uint64_t counter_high, uint64_t counter_low)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_low, c1 = (uint32_t)(counter_low >> 32);
    uint32_t c2 = (uint32_t)counter_high, c3 = (uint32_t)(counter_high >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1          = (uint32_t)p1;
        c3          = (uint32_t)p0;
        c0          = n0;
        c2          = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    struct random_block block = {{c0, c1, c2, c3}};
    return block;
}

// Returns the key of one random stream, a sequence of numbers, from the run's seed and the stream's number. Each part
// of a weight has its own stream, and so have the tokens.
GSWBENCH_INLINE uint64_t random_key(uint64_t seed, uint64_t stream)
{
    struct random_block block = random_philox(seed, 0, stream);
    return (uint64_t)block.word[1] << 32 | block.word[0];
}

// Returns a number that is approximately normal with mean 0 and deviation 1: the sum of the block's eight 16-bit
// halves, centred and scaled. The variance of the sum is 8 * (65536^2 - 1) / 12. Values lie within +-4.9. No
// transcendental function is needed.
GSWBENCH_INLINE float random_normal(uint64_t key, uint64_t index)
{
    struct random_block block = random_philox(key, 0, index);
    uint32_t            sum   = 0;
    for (int i = 0; i < 4; i++) {
        sum += (block.word[i] & 0xffffu) + (block.word[i] >> 16);
    }
    return (float)((int32_t)sum - 262140) * 1.86881237e-5f;
}

// Returns a uniform number in 0 .. bound - 1.
GSWBENCH_INLINE uint32_t random_below(uint64_t key, uint64_t high, uint64_t low, uint32_t bound)
{
    return (uint32_t)(((uint64_t)random_philox(key, high, low).word[0] * bound) >> 32);
}
