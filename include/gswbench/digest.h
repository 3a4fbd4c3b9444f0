// SPDX-License-Identifier: MIT
// A digest is a 2 KiB summary of a tensor. It tells whether two tensors have equal bits and estimates their distance.
// Compiles as C and CUDA, so that host and device compute the same digest.
//
// The hash is a sum over 8-byte words, each mixed with its position, so any order of work gives the same result. The
// sketch is a count sketch (Charikar, Chen, Farach-Colton 2002), a linear map with random signs. The squared distance
// of two sketches estimates the squared distance of the tensors, without bias and with a standard deviation of 9 %,
// sqrt(2 / DIGEST_BUCKETS). So a comparison needs no copy of a tensor, even across ranks.
#pragma once

#include <stdint.h>

#include "gswbench/format.h"

// A quad is 16 bytes of the tensor; the last one is padded with zeros. A chunk is DIGEST_BUCKETS consecutive quads.
// Each bucket of the sketch gets one quad of each chunk: quads are assigned in order, rotated by a random distance per
// chunk.
enum { DIGEST_BUCKETS = 256, DIGEST_QUAD = 16 };

struct digest {
    uint64_t hash;
    double   bucket[DIGEST_BUCKETS];    // the sketch; fp32 and bf16 only, else zeros
};

// Mixes the bits of a word by the finalizer of splitmix64.
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

// Returns the random signs of a quad's elements: bit i is set if element i is added, and clear if it is subtracted.
GSWBENCH_INLINE uint32_t digest_signs(int64_t quad)
{
    return (uint32_t)digest_mix((uint64_t)quad ^ UINT64_C(0x5349474e53));
}

// Returns the index of the quad that this chunk adds to the bucket.
GSWBENCH_INLINE int64_t digest_quad(int64_t chunk, int64_t bucket)
{
    int64_t turn = (int64_t)(digest_mix((uint64_t)chunk) % DIGEST_BUCKETS);
    return chunk * DIGEST_BUCKETS + (bucket + DIGEST_BUCKETS - turn) % DIGEST_BUCKETS;
}

GSWBENCH_INLINE int64_t digest_quads(int64_t bytes)
{
    return (bytes + DIGEST_QUAD - 1) / DIGEST_QUAD;
}

// Returns the signed sum of a quad's elements.
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

// Computes the digest on the host (src/format/digest.c).
void digest_take(struct digest *digest, enum format format, const void *data, int64_t elements);

// Return the estimated 2-norm of a tensor, and of the difference of two tensors; NaN if an element is NaN.
double digest_norm(const struct digest *digest);
double digest_distance(const struct digest *one, const struct digest *other);
