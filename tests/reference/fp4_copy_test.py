# SPDX-License-Identifier: MIT
"""Compares NVFP4 tensors of the host backend with ml_dtypes: codes and scales must be equal bit for bit. --vectors prints
the expected blocks of tests/host/host_fp4_test.c."""
import os
import pathlib
import subprocess
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
except ModuleNotFoundError:
    print("skipped: NumPy or ml_dtypes is not installed (python3 -m pip install ml_dtypes)")
    sys.exit(77)

BLOCK, SIDE = 16, 128
SIGNS = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], np.float32)
MASK = (1 << 32) - 1


def hadamard():
    """Returns Sylvester's Hadamard matrix of 16 rows."""
    matrix = np.ones((1, 1), np.float64)
    while len(matrix) < BLOCK:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def transform(values):
    """Returns blocks of 16 columns times signs S and Hadamard matrix H / 4, rounded to BF16. Sums of BF16 values of similar
    size are exact."""
    blocks = values.reshape(len(values), -1, BLOCK).astype(np.float64) * SIGNS
    return (blocks @ hadamard() / 4).astype(ml_dtypes.bfloat16).astype(np.float32).reshape(values.shape)


def philox(key, high, low):
    """Returns an output of Philox-4x32-10, as docs/numerics.md defines it."""
    words = [low & MASK, low >> 32, high & MASK, high >> 32]
    keys = [key & MASK, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [second >> 32 ^ words[1] ^ keys[0], second & MASK, first >> 32 ^ words[3] ^ keys[1], first & MASK]
        keys = [keys[0] + 0x9E3779B9 & MASK, keys[1] + 0xBB67AE85 & MASK]
    return b"".join(word.to_bytes(4, "little") for word in words)


def nearest(values):
    return values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)


def drawn(values, key, stream):
    """Rounds up if the distance to the lower code, in 256ths of the distance between codes, is above draw + 1/2."""
    draws = np.frombuffer(b"".join(philox(key, stream, i) for i in range(values.size // BLOCK)), np.uint8)
    numbers = np.arange(8, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    sizes = np.minimum(np.abs(values.astype(np.float64)), 6)
    lower = np.searchsorted(numbers, sizes, "right") - 1
    upper = np.minimum(lower + 1, 7)
    gaps = np.where(upper > lower, numbers[upper] - numbers[lower], 1)
    is_up = (sizes - numbers[lower]) / gaps * 256 > draws.reshape(values.shape) + 0.5
    return (np.where(is_up, upper, lower) + np.where(np.signbit(values), 8, 0)).astype(np.uint8)


def quantize(values, is_square, rounding):
    """Returns codes, scales of blocks in E4M3, and the inverse scale of the tensor."""
    one = np.float32(1)
    amax = np.abs(values).max()
    scale = np.float32(2688) / amax if amax > 0 else one
    largest = np.abs(values).reshape(len(values), -1, BLOCK).max(2)
    if is_square:
        largest = largest.reshape(-1, BLOCK, largest.shape[1]).max(1).repeat(BLOCK, 0)
    factors = np.minimum(largest * (scale * (one / np.float32(6))), np.float32(448)).astype(ml_dtypes.float8_e4m3fn)
    with np.errstate(divide="ignore"):
        scales = np.minimum(one / (factors.astype(np.float32) * (one / scale)), np.finfo(np.float32).max)
    scaled = np.clip(values * scales.repeat(BLOCK, 1), np.float32(-6), np.float32(6))
    return rounding(scaled), factors.view(np.uint8), one / scale


def packed(codes):
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)


def tiled(factors):
    """Returns scales in tiles of 128 rows x 4, each viewed as [4, 32, 4] and stored as [32, 4, 4]; 0 beyond the matrix."""
    padded = np.pad(factors, [(0, -size % unit) for size, unit in zip(factors.shape, (SIDE, 4))])
    return padded.reshape(len(padded) // SIDE, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4)


def expected(values, is_square, transforms, draw, key):
    results = b""
    for is_transposed in (0, 1):
        copied = np.ascontiguousarray(values.T) if is_transposed else values
        copied = transform(copied) if transforms and is_transposed else copied
        codes, factors, inverse = quantize(copied, is_square, nearest if draw < 0 else lambda scaled: drawn(
            scaled, key, 2 * draw + is_transposed))
        results += packed(codes).tobytes() + tiled(factors).tobytes() + np.float32(inverse).tobytes()
    return results


def matrix(rows, columns, seed):
    """Returns BF16 numbers of several sizes, with blocks of zeros and some midpoints of codes."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((rows, columns)) * np.exp2(generator.integers(-3, 3, (rows, columns)))
    values[:, :BLOCK] = np.where(np.arange(rows)[:, None] % 3 == 0, 0, values[:, :BLOCK])
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


class Copies(unittest.TestCase):
    def check(self, rows, columns, is_square=0, transforms=0, draw=-1):
        program = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests" / "fp4_copy"
        low, high = 0x123457, 0xABCDEF
        values = matrix(rows, columns, rows + columns)
        words = [str(program), *map(str, (rows, columns, is_square, transforms, draw, low, high))]
        found = subprocess.run(words, input=values.tobytes(), stdout=subprocess.PIPE, check=True).stdout
        wanted = expected(values, is_square, transforms, draw, high << 24 | low)
        self.assertEqual(len(found), len(wanted))
        differing = np.flatnonzero(np.frombuffer(found, np.uint8) != np.frombuffer(wanted, np.uint8))
        self.assertEqual(len(differing), 0, f"{words}: bytes {differing[:8]}")

    def test_rounding_to_nearest(self):
        for rows, columns in ((16, 16), (128, 128), (272, 176)):
            self.check(rows, columns)

    def test_square_blocks(self):
        for rows, columns in ((16, 32), (144, 272)):
            self.check(rows, columns, is_square=1)

    def test_transform(self):
        for rows, columns in ((32, 48), (256, 160)):
            self.check(rows, columns, transforms=1)

    def test_stochastic_rounding(self):
        self.check(160, 48, draw=5)
        self.check(48, 144, transforms=1, draw=70000)


def print_vectors():
    """Prints codes and scales of a 16 x 16 matrix and of its transpose, quantized in four ways."""
    i = np.arange(BLOCK * BLOCK)
    values = np.ldexp((i * 37 % 101 - 50).astype(np.float32), i % 7 - 3).reshape(BLOCK, BLOCK)
    for is_square, transforms, draw in ((0, 0, -1), (1, 0, -1), (0, 1, -1), (0, 1, 3)):
        results = expected(values, is_square, transforms, draw, 0xABCDEF123457)
        copy = len(results) // 2
        for results in (results[:copy], results[copy:]):
            factors = np.frombuffer(results[128:-4], np.uint8)[:BLOCK * 16:16]
            print(f'"{results[:128].hex()}", "{factors.tobytes().hex()}", {np.frombuffer(results[-4:], np.float32)[0]!r}')


if __name__ == "__main__":
    if sys.argv[1:] == ["--vectors"]:
        print_vectors()
    else:
        unittest.main()
