# SPDX-License-Identifier: MIT
"""Compares FP8 GEMMs of the host backend with NumPy, for every kind of scaling. Codes and scales must be equal bit for bit."""
import os
import pathlib
import subprocess
import sys
import unittest

try:
    import numpy as np
except ModuleNotFoundError:
    print("skipped: NumPy is not installed (python3-numpy)")
    sys.exit(77)

PROGRAM = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests" / "fp8_gemm"
WHOLE, RUNS, SQUARES, BLOCKS = range(4)
SIDE, BLOCK = 128, 32


class Format:
    """The finite values of a format by code, for one sign. Each sign has more codes, for special values."""

    def __init__(self, name, mantissa_bits, bias, numbers):
        codes = np.arange(numbers)
        exponents, mantissas = codes >> mantissa_bits, codes & (1 << mantissa_bits) - 1
        whole = mantissas + np.where(exponents > 0, 1 << mantissa_bits, 0)
        self.name = name
        self.numbers = np.ldexp(whole.astype(np.float64), np.maximum(exponents, 1) - bias - mantissa_bits)

    def codes_of(self, values):
        """Rounds to nearest even, and saturates. Values, codes and midpoints are exact in double precision."""
        middles = (self.numbers[:-1] + self.numbers[1:]) / 2
        magnitudes = np.abs(values.astype(np.float64))
        below, above = np.searchsorted(middles, magnitudes, "left"), np.searchsorted(middles, magnitudes, "right")
        return (np.where(below % 2 == 0, below, above) + np.where(np.signbit(values), 128, 0)).astype(np.uint8)

    def values_of(self, codes):
        return np.where(codes < 128, 1, -1) * self.numbers[codes % 128]


E4M3, E5M2 = Format("e4m3", 3, 7, 0x7F), Format("e5m2", 2, 15, 0x7C)


def parts_of(values, scaling):
    """Returns, for every element, the index of its scaled part in each direction."""
    rows, columns = np.indices(values.shape)
    if scaling == WHOLE:
        return 0 * rows, 0 * columns
    return rows // SIDE if scaling == SQUARES else rows, columns // (BLOCK if scaling == BLOCKS else SIDE)


def quantize(values, number_format, scaling, scale):
    """Returns the codes, the scale of each part, and the scale of each element."""
    down, across = parts_of(values, scaling)
    largest = np.zeros((down.max() + 1, across.max() + 1), np.float32)
    np.maximum.at(largest, (down, across), np.abs(values))
    with np.errstate(divide="ignore"):
        scales = np.where(largest > 0, np.float32(number_format.numbers[-1]) / largest, np.float32(1))
    if scaling == BLOCKS:  # powers of two as large as possible without saturation
        with np.errstate(divide="ignore"):
            powers = np.ceil(np.log2(largest.astype(np.float64) / number_format.numbers[-1]))
        scales = np.exp2(-np.maximum(powers, -127))
    scales = np.full_like(largest, scale) if scale else scales.astype(np.float32)
    factors = np.float32(1) / scales
    return number_format.codes_of(values * scales[down, across]), factors, factors[down, across]


def as_stored(factors, scaling):
    """Returns scales in storage order. 1x128 scales are transposed. Rows of 128x128 scales are padded to a multiple
    of four. MX scales are bytes in tiles of 128 rows x 4, each viewed as [4, 32, 4] and stored as [32, 4, 4]."""
    if scaling == BLOCKS:
        codes = np.pad(np.log2(factors).astype(int) + 127, [(0, -size % unit) for size, unit in
                                                            zip(factors.shape, (SIDE, 4))])
        tiles = codes.reshape(len(codes) // SIDE, 4, 32, -1, 4)
        return tiles.transpose(0, 3, 2, 1, 4).astype(np.uint8)
    if scaling == RUNS:
        return factors.T
    padding = -factors.shape[1] % 4 if scaling == SQUARES else 0
    return np.pad(factors, ((0, 0), (0, padding)), constant_values=np.nan)


class Matrix:
    def __init__(self, rows, columns, number_format, scaling, scale, generator):
        self.number_format, self.scaling, self.scale = number_format, scaling, scale
        spread = np.exp2(generator.integers(-6, 6, (rows, columns)))
        values = (generator.standard_normal((rows, columns)) * spread).astype(np.float32)
        # Values are rounded to BF16, so that many are midpoints of two FP8 codes.
        self.values = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
        self.values[:SIDE, :SIDE] *= 0
        self.codes, factors, by_element = quantize(self.values, number_format, scaling, scale)
        self.factors = as_stored(factors, scaling)
        self.meant = number_format.values_of(self.codes) * by_element.astype(np.float64)

    def words(self):
        return [self.number_format.name, str(self.scaling), repr(float(self.scale))]


class Product(unittest.TestCase):
    def check(self, a, b):
        size = [str(len(a.values)), str(len(b.values)), str(a.values.shape[1])]
        values = a.values.tobytes() + b.values.T.tobytes()
        words = [PROGRAM, *size, *a.words(), *b.words()]
        self.rest = subprocess.run(words, input=values, stdout=subprocess.PIPE, check=True).stdout
        for matrix in (a, b):
            codes = self.take(np.uint8, matrix.codes.shape)
            factors = self.take(matrix.factors.dtype, matrix.factors.shape)
            np.testing.assert_array_equal(codes, matrix.codes)
            is_used = ~np.isnan(matrix.factors)
            np.testing.assert_array_equal(factors[is_used], matrix.factors[is_used])
        expected = a.meant @ b.meant.T
        error = np.abs(self.take(np.float32, expected.shape) - expected).max() / np.abs(expected).max()
        print(f"{' '.join(size)} {' '.join(a.words())} {' '.join(b.words())}: {error:.1e}")
        self.assertLess(error, 1e-6)
        self.assertEqual(len(self.rest), 0)

    def take(self, dtype, shape):
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        taken, self.rest = self.rest[:count], self.rest[count:]
        return np.frombuffer(taken, dtype).reshape(shape)

    def check_all(self, *ways):
        """Checks each way, the formats, scalings and scales of A and B, with complete and partial 128x128 blocks."""
        generator = np.random.default_rng(7)
        for m, n, k in ((256, 128, 384), (130, 257, 700), (1, 48, 144)):
            for (format_a, scaling_a, scale_a), (format_b, scaling_b, scale_b) in ways:
                self.check(Matrix(m, k, format_a, scaling_a, scale_a, generator),
                           Matrix(n, k, format_b, scaling_b, scale_b, generator))

    def test_current(self):
        self.check_all(((E4M3, WHOLE, 0), (E4M3, WHOLE, 0)), ((E5M2, WHOLE, 0), (E4M3, WHOLE, 0)))

    def test_delayed(self):
        """Tests scales that saturate some values of one matrix and flush some of the other matrix to zero."""
        self.check_all(((E4M3, WHOLE, 16), (E4M3, WHOLE, 0.37)), ((E5M2, WHOLE, 1 / 2048), (E4M3, WHOLE, 3)))

    def test_block(self):
        self.check_all(((E4M3, RUNS, 0), (E4M3, SQUARES, 0)), ((E4M3, RUNS, 0), (E4M3, RUNS, 0)),
                       ((E5M2, RUNS, 0), (E4M3, SQUARES, 0)))

    def test_blocks(self):
        self.check_all(((E4M3, BLOCKS, 0), (E4M3, BLOCKS, 0)), ((E5M2, BLOCKS, 0), (E4M3, BLOCKS, 0)))


if __name__ == "__main__":
    unittest.main()
