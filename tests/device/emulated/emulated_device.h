// SPDX-License-Identifier: MIT
// What a kernel finds on a device without naming a header: the compiler includes this one first.
#ifndef GSWBENCH_TESTS_EMULATED_DEVICE_H
#define GSWBENCH_TESTS_EMULATED_DEVICE_H

#include "emulated_warp.h"

static inline float __uint_as_float(unsigned word)
{
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}
static inline unsigned __float_as_uint(float value)
{
    unsigned word;
    memcpy(&word, &value, sizeof(word));
    return word;
}
// Four of the eight bytes of (low, high), each named by three bits of the selector.
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    uint64_t bytes  = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7u) & 0xffu) << 8 * i;
    }
    return result;
}
static inline int __popc(unsigned word)
{
    return __builtin_popcount(word);
}
static inline int __ffs(int word)
{
    return __builtin_ffs(word);
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
template <typename T> static inline T __ldg(const T *from)
{
    return *from;
}
template <typename T> static inline T __ldcs(const T *from)
{
    return *from;
}
template <typename T> static inline void __stcs(T *to, T value)
{
    *to = value;
}
template <typename T> static inline void __stwb(T *to, T value)
{
    *to = value;
}
// Fibers do not interrupt each other.
template <typename T> static inline T atomicAdd(T *to, T value)
{
    T before = *to;
    *to      = before + value;
    return before;
}
template <typename T> static inline T atomicMax(T *to, T value)
{
    T before = *to;
    *to      = before < value ? value : before;
    return before;
}
static inline void __threadfence(void)
{
}
// What kernels read and write in whole packets, and in parts of such.
static inline void watch_read(const void *at, int64_t bytes)
{
    emulator::watch(at, bytes, false);
}
static inline void watch_write(const void *at, int64_t bytes)
{
    emulator::watch(at, bytes, true);
}
using std::max;
using std::min;

#endif
