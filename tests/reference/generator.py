# SPDX-License-Identifier: MIT
"""Slow, independent implementation of the tokens and weights that docs/numerics.md specifies."""
import struct

MASK = 0xffffffff
TOKENS, TRANSITIONS = 2 ** 64 - 1, 2 ** 64 - 2


def philox(key, high, low):
    k0, k1 = key & MASK, key >> 32
    c0, c1, c2, c3 = low & MASK, low >> 32, high & MASK, high >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def stream_key(seed, stream):
    words = philox(seed, 0, stream)
    return words[1] << 32 | words[0]


def below(key, high, low, bound):
    return philox(key, high, low)[0] * bound >> 32


def single(value):
    """Rounds to single precision. The product of two singles is exact in double, so it is rounded only once."""
    return struct.unpack("f", struct.pack("f", value))[0]


def normal(key, index):
    total = sum((word & 0xffff) + (word >> 16) for word in philox(key, 0, index))
    return single((total - 262140) * single(1.86881237e-5))


def sample(kind, seed, vocab, sequence, number):
    key = stream_key(seed, TOKENS)
    if kind == "uniform":
        return [below(key, number, i, vocab) for i in range(sequence + 1)]
    transitions = stream_key(seed, TRANSITIONS)
    alphabet = min(vocab, 256)
    tokens = [below(key, number, 0, alphabet)]
    for i in range(1, sequence + 1):
        j = [0, 0, 0, 0, 1, 1, 2, 3][below(key, number, i, 8)]
        begin, end = j * alphabet // 4, (j + 1) * alphabet // 4
        tokens.append(begin + below(transitions, tokens[-1], j, end - begin))
    return tokens


def stream(layer, place):
    """Returns the number of the random stream of a matrix in a layer; layer -1: outside the layers."""
    return 2 ** 20 + (layer + 1) * 64 + place


def expert_stream(layer, expert, place):
    return 2 ** 40 + (layer * 1024 + expert) * 4 + place


def weight(seed, number, deviation, index):
    """Returns element `index` of the matrix with this random stream."""
    return single(single(deviation) * normal(stream_key(seed, number), index))
