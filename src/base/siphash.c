// SPDX-License-Identifier: MIT
// Computes SipHash-2-4, a keyed hash (Aumasson and Bernstein, 2012).
#include "gswbench/siphash.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static uint64_t load(const uint8_t *data, size_t bytes)
{
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++) {
        word |= (uint64_t)data[i] << (8 * i);
    }
    return word;
}

static void mix(struct state *s, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static void add(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    mix(s, 2);
    s->v0 ^= word;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_BYTES], const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint64_t       k0 = load(key, 8), k1 = load(key + 8, 8);
    struct state   s     = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                            k1 ^ 0x7465646279746573};
    size_t         whole = bytes / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        add(&s, load(at + i, 8));
    }
    add(&s, load(at + whole, bytes - whole) | (uint64_t)bytes << 56);
    s.v2 ^= 0xff;
    mix(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
