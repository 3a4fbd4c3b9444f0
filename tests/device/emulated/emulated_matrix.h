// SPDX-License-Identifier: MIT
// The matrix instructions and background copies of kernels/matrix.cuh, by exchange between the lanes of a warp.
#ifndef GSWBENCH_TESTS_EMULATED_MATRIX_H
#define GSWBENCH_TESTS_EMULATED_MATRIX_H

static inline void matrix_load_rows(uint32_t (&to)[4], const bf16 *row, bool is_transposed)
{
    const bf16 *rows[emulator::WARP];
    int         across = (int)(threadIdx.x % 32) / 4;
    emulator::gather(0xffffffffu, &row, rows, sizeof(row));
    emulator::count(&emulator_traffic::fed_bytes, sizeof(to));
    for (int matrix = 0; matrix < 4; matrix++) {
        to[matrix] = 0;
        for (int i = 0; i < 2; i++) {
            int along = (int)(threadIdx.x % 4) * 2 + i;
            to[matrix] |= (uint32_t)rows[matrix * 8 + (is_transposed ? along : across)][is_transposed ? across : along]
                          << 16 * i;
        }
    }
}

static inline void matrix_load(uint32_t (&to)[4], const bf16 *row)
{
    matrix_load_rows(to, row, false);
}

static inline void matrix_load_transposed(uint32_t (&to)[4], const bf16 *row)
{
    matrix_load_rows(to, row, true);
}

static inline float matrix_half(uint32_t word, int half)
{
    return bf16_to_float((bf16)(word >> 16 * half));
}

// Element [row, k] of a is in lane row % 8 * 4 + k % 8 / 2, register row / 8 + 2 (k / 8); element [k, column] of b in
// lane column * 4 + k % 8 / 2, register k / 8; element [row, column] of c as matrix_row and matrix_column say.
static inline void matrix_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1}, words[emulator::WARP][6];
    emulator::gather(0xffffffffu, own, words, sizeof(own));
    emulator::count(&emulator_traffic::operations, 2 * 4 * 16);
    int lane = emulator::lane();
    for (int i = 0; i < 4; i++) {
        int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) {
            float left  = matrix_half(words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
            float right = matrix_half(words[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
            c[i] += left * right;
        }
    }
}

// A copy arrives as late as it may: when it is waited for. It passes by a multiprocessor's cache.
static inline void copy_start(void *to, const void *from)
{
    emulator::count(&emulator_traffic::read_bytes, 16);
    emulator::copy_late(to, from, 16);
}
static inline void copy_mark()
{
    emulator::copy_mark();
}
template <int pending> static inline void copy_wait()
{
    emulator::copy_arrive(pending);
}

#endif
