// SPDX-License-Identifier: MIT
// What a tensor comes to in 2 KiB: whether two tensors have the same bits, and how far apart they are. Compiles as C
// and as CUDA, so that a host and a device find the same.
//
// The hash is a sum over words of 8 bytes, each mixed with its place, so that any order of work gives the same. The
// sketch is a count sketch (Charikar, Chen, Farach-Colton 2002) with a linear map of random signs: the squares of the
// differences of two sketches add up to the square of the norm of the tensors' difference in the mean, with a standard
// deviation of sqrt(2 / DIGEST_BUCKETS) = 9 % of it. No tensor has to be kept, or sent to another rank, for that.
#ifndef GSWBENCH_DIGEST_H
#define GSWBENCH_DIGEST_H

#include <stdint.h>

#include "gswbench/format.h"

// A quad is 16 bytes; the last one ends in zeros. Quad i lies in chunk i / DIGEST_BUCKETS, which turns its buckets.
enum { DIGEST_BUCKETS = 256, DIGEST_QUAD = 16 };

struct digest {
    uint64_t hash;
    double   bucket[DIGEST_BUCKETS];    // of tensors in fp32 and bf16; of others zeros
};

// The finalizer of splitmix64.
GSWBENCH_INLINE uint64_t digest_mix(uint64_t word)
{
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

GSWBENCH_INLINE uint64_t digest_hash(uint64_t low, uint64_t high, int64_t quad)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    return digest_mix(low + (2 * (uint64_t)quad + 1) * odd) + digest_mix(high + (2 * (uint64_t)quad + 2) * odd);
}

// The sign of element i of a quad is bit i.
GSWBENCH_INLINE uint32_t digest_signs(int64_t quad)
{
    return (uint32_t)digest_mix((uint64_t)quad ^ UINT64_C(0x5349474e53));
}

// The quad of a chunk that falls into a bucket.
GSWBENCH_INLINE int64_t digest_quad(int64_t chunk, int64_t bucket)
{
    int64_t turn = (int64_t)(digest_mix((uint64_t)chunk) % DIGEST_BUCKETS);
    return chunk * DIGEST_BUCKETS + (bucket + DIGEST_BUCKETS - turn) % DIGEST_BUCKETS;
}

GSWBENCH_INLINE int64_t digest_quads(int64_t bytes)
{
    return (bytes + DIGEST_QUAD - 1) / DIGEST_QUAD;
}

// The sum of a quad's elements with their signs.
GSWBENCH_INLINE double digest_sum(enum format format, const uint32_t word[4], uint32_t signs)
{
    double sum = 0;
    for (int i = 0; i < (format == FORMAT_BF16 ? 8 : 4); i++) {
        union {
            uint32_t bits;
            float    number;
        } element;
        element.bits = format == FORMAT_BF16 ? (i % 2 == 0 ? word[i / 2] << 16 : word[i / 2] & 0xffff0000u) : word[i];
        sum += signs >> i & 1 ? (double)element.number : -(double)element.number;
    }
    return sum;
}

GSWBENCH_INLINE bool digest_has_sketch(enum format format)
{
    return format == FORMAT_F32 || format == FORMAT_BF16;
}

// digest.c: the digest of what a host can read.
void digest_take(struct digest *digest, enum format format, const void *data, int64_t elements);

// The norm of a tensor, and of the difference of two, by their sketches; NaN where an element is none.
double digest_norm(const struct digest *digest);
double digest_distance(const struct digest *one, const struct digest *other);

#endif
