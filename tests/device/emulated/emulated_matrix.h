// SPDX-License-Identifier: MIT
// The matrix instructions and background copies of kernels/matrix.cuh, by exchange between the lanes of a warp.
#ifndef GSWBENCH_TESTS_EMULATED_MATRIX_H
#define GSWBENCH_TESTS_EMULATED_MATRIX_H

static inline void matrix_load_rows(uint32_t (&to)[4], const bf16 *row, bool is_transposed)
{
    const emulator::posted *rows   = emulator::collect(0xffffffffu, &row, sizeof(row));
    int                     across = (int)(threadIdx.x % 32) / 4;
    emulator::count(&emulator_traffic::fed_bytes, sizeof(to));
    for (int matrix = 0; matrix < 4; matrix++) {
        to[matrix] = 0;
        for (int i = 0; i < 2; i++) {
            int         along = (int)(threadIdx.x % 4) * 2 + i;
            const bf16 *from  = rows[matrix * 8 + (is_transposed ? along : across)].as<const bf16 *>();
            to[matrix] |= (uint32_t)from[is_transposed ? across : along] << 16 * i;
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

// What a lane gives to a product, and four elements of one, which the processor multiplies at once.
struct matrix_words {
    uint32_t a[4], b[2];
};
typedef uint32_t matrix_pairs __attribute__((vector_size(16)));
typedef float    matrix_sums __attribute__((vector_size(16)));

// Element [row, k] of a is in lane row % 8 * 4 + k % 8 / 2, register row / 8 + 2 (k / 8); element [k, column] of b in
// lane column * 4 + k % 8 / 2, register k / 8; element [row, column] of c as matrix_row and matrix_column say. A lane
// has two rows, eight apart, by two columns beside each other, and adds up its four products in the order of k.
static inline void matrix_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    const matrix_words      own   = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    const emulator::posted *words = emulator::collect(0xffffffffu, &own, sizeof(own));
    int                     row = emulator::lane() / 4, column = emulator::lane() % 4 * 2;
    matrix_sums             sums = {c[0], c[1], c[2], c[3]};
    emulator::count(&emulator_traffic::operations, 2 * 4 * 16);
    for (int k = 0; k < 16; k += 2) {    // a word has element k in its lower half and k + 1 in its upper one
        matrix_words of_row = words[row * 4 + k % 8 / 2].as<matrix_words>();
        uint32_t     upper = of_row.a[2 * (k / 8)], lower = of_row.a[1 + 2 * (k / 8)];
        uint32_t     left  = words[column * 4 + k % 8 / 2].as<matrix_words>().b[k / 8];
        uint32_t     right = words[(column + 1) * 4 + k % 8 / 2].as<matrix_words>().b[k / 8];
        matrix_pairs rows = {upper, upper, lower, lower}, columns = {left, right, left, right};
        sums += (matrix_sums)(rows << 16) * (matrix_sums)(columns << 16);
        sums += (matrix_sums)(rows & 0xffff0000u) * (matrix_sums)(columns & 0xffff0000u);
    }
    memcpy(c, &sums, sizeof(c));
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
