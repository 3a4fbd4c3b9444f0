// SPDX-License-Identifier: MIT
// Multiplies matrices per warp, with mma.sync, ldmatrix and cp.async. A tile is a matrix of bf16 rows in shared memory.
// Each row is padded with MATRIX_GAP elements, so that adjacent rows start in different banks.
#pragma once

#include <stdint.h>

#include "gswbench/format.h"

// Loads four 8 x 8 matrices. The addresses of their rows come from lanes 0-7, 8-15, 16-23 and 24-31. Of each matrix, a
// lane receives two elements of row lane / 4: columns 2 * (lane % 4) and 2 * (lane % 4) + 1.
static __device__ inline void matrix_load(uint32_t (&to)[4], const bf16 *row)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

static __device__ inline void matrix_load_transposed(uint32_t (&to)[4], const bf16 *row)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// Computes c [16, 8] += a [16, 16] b [16, 8].
static __device__ inline void matrix_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts an asynchronous 16-byte copy to shared memory. copy_mark ends a group of copies; copy_wait<pending> waits
// until at most `pending` groups are unfinished.
static __device__ inline void copy_start(void *to, const void *from)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

static __device__ inline void copy_mark()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int pending> static __device__ inline void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

enum { MATRIX_GAP = 8, MATRIX_SIDE = 16 };

// matrix_row and matrix_column return the first row and column of a thread's elements in a [16, 8] mma result. A thread
// has four elements: in this row and in the row 8 below, in this column and the next.
static __device__ inline int matrix_row()
{
    return (int)(threadIdx.x % 32) / 4;
}
static __device__ inline int matrix_column()
{
    return (int)(threadIdx.x % 4) * 2;
}

// Returns the address that a lane passes to ldmatrix: lane_of_left for a 16 x 16 left operand, or for a right operand
// that matrix_load_transposed loads; lane_of_right for a right operand b that is in memory as 16 rows of b^T.
static __device__ inline const bf16 *lane_of_left(const bf16 *tile, int pitch)
{
    return tile + threadIdx.x % 16 * pitch + threadIdx.x % 32 / 16 * 8;
}
static __device__ inline const bf16 *lane_of_right(const bf16 *tile, int pitch)
{
    int lane = threadIdx.x % 32;
    return tile + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;
}

// Computes c [16 * sides, 8 * columns] += a b^T. a [16 * sides, 16 * steps] and b [8 * columns, 16 * steps] are tiles
// in shared memory.
template <int sides, int columns, int steps, int pitch>
static __device__ inline void multiply_rows(float (&c)[sides][columns][4], const bf16 *a, const bf16 *b)
{
    const bf16 *a_row = lane_of_left(a, pitch), *b_row = lane_of_right(b, pitch);
#pragma unroll 1    // not unrolled: loads of the next step would need more registers
    for (int step = 0; step < steps; step++) {
        uint32_t left[sides][4], right[4];
#pragma unroll
        for (int side = 0; side < sides; side++) {
            matrix_load(left[side], a_row + side * MATRIX_SIDE * pitch + step * MATRIX_SIDE);
        }
#pragma unroll
        for (int column = 0; column < columns; column += 2) {
            matrix_load(right, b_row + column * 8 * pitch + step * MATRIX_SIDE);
#pragma unroll
            for (int side = 0; side < sides; side++) {
                matrix_multiply(c[side][column], left[side], right[0], right[1]);
                matrix_multiply(c[side][column + 1], left[side], right[2], right[3]);
            }
        }
    }
}

// Computes c [16 * sides, 8 * columns] += a b. b [16 * steps, 8 * columns] is a tile in shared memory. A step
// multiplies 16 columns of a, which load(left, step) provides, with 16 rows of b.
template <int sides, int columns, int steps, int pitch, typename Load>
static __device__ inline void multiply_along(float (&c)[sides][columns][4], const bf16 *b, Load load)
{
    const bf16 *b_row = lane_of_left(b, pitch);
#pragma unroll
    for (int step = 0; step < steps; step++) {
        uint32_t left[sides][4], right[4];
        load(left, step);
#pragma unroll
        for (int column = 0; column < columns; column += 2) {
            matrix_load_transposed(right, b_row + step * MATRIX_SIDE * pitch + column * 8);
#pragma unroll
            for (int side = 0; side < sides; side++) {
                matrix_multiply(c[side][column], left[side], right[0], right[1]);
                matrix_multiply(c[side][column + 1], left[side], right[2], right[3]);
            }
        }
    }
}

// Computes c += a b with a [16 * sides, 8 * inner] in registers: an mma result, rounded to bf16.
template <int sides, int columns, int inner, int pitch>
static __device__ inline void multiply_result(float (&c)[sides][columns][4], const uint32_t (&a)[sides][inner][2],
                                              const bf16 *b)
{
    multiply_along<sides, columns, inner / 2, pitch>(c, b, [&](uint32_t(&left)[sides][4], int step) {
#pragma unroll
        for (int side = 0; side < sides; side++) {
            left[side][0] = a[side][2 * step][0];
            left[side][1] = a[side][2 * step][1];
            left[side][2] = a[side][2 * step + 1][0];
            left[side][3] = a[side][2 * step + 1][1];
        }
    });
}

// Computes c += a b with a [16 * sides, 16 * steps] in shared memory.
template <int sides, int columns, int steps, int a_pitch, int pitch>
static __device__ inline void multiply_stored(float (&c)[sides][columns][4], const bf16 *a, const bf16 *b)
{
    const bf16 *a_row = lane_of_left(a, a_pitch);
    multiply_along<sides, columns, steps, pitch>(c, b, [&](uint32_t(&left)[sides][4], int step) {
#pragma unroll
        for (int side = 0; side < sides; side++) {
            matrix_load(left[side], a_row + side * MATRIX_SIDE * a_pitch + step * MATRIX_SIDE);
        }
    });
}
