// SPDX-License-Identifier: MIT
// Matrix products: C is cut into tiles, the threads share the tiles, and BLAS multiplies. The tiles depend on the
// shape alone, so that the result does not depend on the number of threads.
#include <cblas.h>

#include "internal.h"

// Of C; and the depth of the fp32 copies that operands of another type need, so that a tile's copies stay in the cache.
enum { TILE_ROWS = 512, TILE_COLUMNS = 512, TILE_DEPTH = 512 };

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// Scratch of a thread: a block of A, one of B and a tile of C, in fp32.
int64_t host_gemm_floats(const struct op *op, int threads)
{
    (void)op;
    (void)threads;
    return TILE_ROWS * TILE_DEPTH + TILE_DEPTH * TILE_COLUMNS + TILE_ROWS * TILE_COLUMNS;
}

// The block of rows x columns at (row, column) of an operand that is stored with leading elements a row, or transposed.
static struct panel read_block(const struct buffer *buffer, bool transposed, int64_t leading, const int64_t place[2],
                               const int64_t size[2], float *space)
{
    int stored_row = transposed ? 1 : 0, stored_column = 1 - stored_row;
    return panel_read(buffer, place[stored_row] * leading + place[stored_column], leading, size[stored_row],
                      size[stored_column], space);
}

static void multiply_tile(const struct work *work, int64_t row, int64_t column, float *space)
{
    const struct gemm_shape *shape   = &work->op->shape.gemm;
    const struct buffer     *buffers = work->buffers, *c = &buffers[GEMM_C];
    bool                     is_wide = buffers[GEMM_A].dtype == DTYPE_F32 && buffers[GEMM_B].dtype == DTYPE_F32;
    int64_t                  depth   = is_wide ? shape->k : TILE_DEPTH;
    int64_t rows = host_minimum(TILE_ROWS, shape->m - row), columns = host_minimum(TILE_COLUMNS, shape->n - column);
    float  *b_space = space + TILE_ROWS * TILE_DEPTH, *c_space = b_space + TILE_DEPTH * TILE_COLUMNS;
    bool    in_place  = c->dtype == DTYPE_F32;
    float  *to        = in_place ? (float *)c->data + row * shape->n + column : c_space;
    int     leading_c = in_place ? (int)shape->n : TILE_COLUMNS;
    for (int64_t k = 0; k < shape->k; k += depth) {
        int64_t      length = host_minimum(depth, shape->k - k);
        bool         adds   = k > 0 || (in_place && work->op->accumulates);
        struct panel a      = read_block(&buffers[GEMM_A], shape->transpose_a, shape->transpose_a ? shape->m : shape->k,
                                         (int64_t[]){row, k}, (int64_t[]){rows, length}, space);
        struct panel b      = read_block(&buffers[GEMM_B], shape->transpose_b, shape->transpose_b ? shape->k : shape->n,
                                         (int64_t[]){k, column}, (int64_t[]){length, columns}, b_space);
        cblas_sgemm(CblasRowMajor, shape->transpose_a ? CblasTrans : CblasNoTrans,
                    shape->transpose_b ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)length, 1.0f, a.data,
                    a.leading, b.data, b.leading, adds ? 1.0f : 0.0f, to, leading_c);
    }
    for (int64_t i = 0; i < rows && !in_place; i++) {
        row_store(c, (row + i) * shape->n + column, columns, c_space + i * TILE_COLUMNS, work->op->accumulates);
    }
}

static void multiply_tiles(void *context, int64_t first, int64_t last, int thread)
{
    const struct work *work    = context;
    int64_t            columns = ceiling(work->op->shape.gemm.n, TILE_COLUMNS);
    float             *space   = host_scratch(work, thread, host_gemm_floats(work->op, 1));
    for (int64_t tile = first; tile < last; tile++) {
        multiply_tile(work, tile / columns * TILE_ROWS, tile % columns * TILE_COLUMNS, space);
    }
}

void host_gemm(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct gemm_shape *shape = &op->shape.gemm;
    host_run_loop(backend, op, buffers, multiply_tiles, ceiling(shape->m, TILE_ROWS) * ceiling(shape->n, TILE_COLUMNS));
}
