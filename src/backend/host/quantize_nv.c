// SPDX-License-Identifier: MIT
// Quantizes a matrix to NVFP4. The row-wise and the transposed copy have separate tensor scales, because only the
// transposed copy may be multiplied by a Hadamard matrix before it is quantized.
#include <math.h>
#include <string.h>

#include "gswbench/fp4.h"
#include "internal.h"

enum { BLOCK = SCALING_NV_BLOCK };

// An NVFP4 copy of the matrix: row-wise or transposed.
struct copy {
    struct buffer        codes, factors;
    int64_t              rows, columns;
    bool                 is_transposed, transforms, is_square, is_stochastic;
    float                scale;     // per-tensor scale
    uint64_t             key;       // key of the step's random bytes for stochastic rounding
    uint64_t             stream;    // random stream of this copy
    const struct buffer *in;
};

static struct copy copy_of(const struct op *op, const struct buffer buffers[], bool is_transposed)
{
    const struct quantize_shape *shape = &op->shape.quantize;
    const float                 *hyper = buffers[QUANTIZE_HYPER].data;
    const struct buffer *inverse = &buffers[is_transposed ? QUANTIZE_TRANSPOSED_TENSOR_SCALE : QUANTIZE_TENSOR_SCALE];
    return (struct copy){
        .codes         = buffers[is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT],
        .factors       = buffers[is_transposed ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE],
        .rows          = is_transposed ? shape->columns : shape->rows,
        .columns       = is_transposed ? shape->rows : shape->columns,
        .is_transposed = is_transposed,
        .transforms    = shape->transforms && is_transposed,
        .is_square     = shape->scaling == SCALING_NV_SQUARE,
        .is_stochastic = shape->is_stochastic,
        .scale         = inverse->data != NULL ? fp4_tensor_scale(*(const float *)inverse->data) : 1,
        .key           = shape->is_stochastic ? fp4_key(hyper[HYPER_KEY_LOW], hyper[HYPER_KEY_HIGH]) : 0,
        .stream        = fp4_stream(shape->draw, is_transposed),
        .in            = &buffers[QUANTIZE_IN],
    };
}

// Reads a block of 16 values of a copy, the first at (row, column) of the tile. Values beyond the matrix are zero.
// Returns the number of values within the matrix.
static int64_t read_block(const struct copy *copy, const struct panel *tile, int64_t row, int64_t column, float *values)
{
    int64_t end = copy->is_transposed ? tile->rows : tile->columns, count = number_min(BLOCK, end - column);
    for (int64_t i = 0; i < BLOCK; i++) {
        int64_t at = copy->is_transposed ? (column + i) * tile->leading + row : row * tile->leading + column + i;
        values[i]  = i < count ? tile->data[at] : 0;
    }
    if (copy->transforms) {
        fp4_transform(values);
    }
    return count;
}

static void store_codes(const struct copy *copy, int64_t row, int64_t column, const float *values, float scale)
{
    int64_t             blocks = (copy->columns + BLOCK - 1) / BLOCK, count = number_min(BLOCK, copy->columns - column);
    uint8_t            *to    = (uint8_t *)copy->codes.data + (row * copy->columns + column) / 2;
    struct random_block drawn = {{0}};
    uint8_t             codes[BLOCK];
    if (copy->is_stochastic) {
        drawn = random_philox(copy->key, copy->stream, (uint64_t)(row * blocks + column / BLOCK));
    }
    for (int i = 0; i < BLOCK; i++) {
        float scaled = values[i] * scale;
        codes[i]     = copy->is_stochastic ? fp4_draw(scaled, fp4_byte(&drawn, i)) : fp4_from_float(scaled);
    }
    for (int64_t i = 0; i < count; i += 2) {
        to[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
    }
}

// Quantizes 16 rows of a tile. With square blocks, 16 x 16 elements share an amax; otherwise 16 elements of a row do.
static void store_blocks(const struct copy *copy, const struct panel *tile, int64_t tile_row, int64_t tile_column,
                         int64_t first)
{
    int64_t rows    = copy->is_transposed ? tile->columns : tile->rows,
            columns = copy->is_transposed ? tile->rows : tile->columns, end = number_min(first + BLOCK, rows);
    for (int64_t column = 0; column < columns; column += BLOCK) {
        float values[BLOCK][BLOCK], largest[BLOCK], all = 0;
        for (int64_t row = first; row < end; row++) {
            read_block(copy, tile, row, column, values[row - first]);
            largest[row - first] = row_magnitude(values[row - first], BLOCK);
            all                  = fmaxf(all, largest[row - first]);
        }
        for (int64_t row = first; row < end; row++) {
            uint8_t factor = fp4_block_factor(copy->is_square ? all : largest[row - first], copy->scale);
            int64_t at =
                scaling_inverse_at(SCALING_NV, copy->rows, copy->columns, tile_row + row, tile_column + column);
            ((uint8_t *)copy->factors.data)[at] = factor;
            store_codes(copy, tile_row + row, tile_column + column, values[row - first],
                        fp4_block_scale(factor, copy->scale));
        }
    }
}

struct panel host_read_tile(const struct loop *loop, int64_t index, int64_t *row, int64_t *column, float *space)
{
    const struct quantize_shape *shape = &loop->op->shape.quantize;
    *row                               = index / scaling_sides(shape->columns) * SCALING_SIDE;
    *column                            = index % scaling_sides(shape->columns) * SCALING_SIDE;
    struct view view = {*row * shape->columns + *column, shape->columns, number_min(SCALING_SIDE, shape->rows - *row),
                        number_min(SCALING_SIDE, shape->columns - *column)};
    return panel_read(&loop->buffers[QUANTIZE_IN], &view, space);
}

static void quantize_tiles(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    for (int64_t i = first; i < last; i++) {
        int64_t      row, column;
        struct panel tile = host_read_tile(loop, i, &row, &column, host_space(loop, thread));
        for (int transposed = 0; transposed < 2; transposed++) {
            struct copy copy = copy_of(loop->op, loop->buffers, transposed != 0);
            int64_t     rows = transposed ? tile.columns : tile.rows;
            for (int64_t start = 0; copy.codes.data != NULL && start < rows; start += BLOCK) {
                store_blocks(&copy, &tile, transposed ? column : row, transposed ? row : column, start);
            }
        }
    }
}

// Computes the amax of the Hadamard-transformed matrix for each of HOST_PARTS parts, which are sets of tiles.
static void find_parts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct quantize_shape *shape  = &loop->op->shape.quantize;
    const struct copy            copy   = copy_of(loop->op, loop->buffers, true);
    int64_t                      tiles  = scaling_sides(shape->rows) * scaling_sides(shape->columns);
    float                       *maxima = host_shared(loop->host, loop->op);
    for (int64_t part = first; part < last; part++) {
        float largest = 0;
        for (int64_t i = part; i < tiles; i += HOST_PARTS) {
            int64_t      tile_row, tile_column;
            struct panel tile = host_read_tile(loop, i, &tile_row, &tile_column, host_space(loop, thread));
            for (int64_t row = 0; row < tile.columns; row++) {
                for (int64_t column = 0; column < tile.rows; column += BLOCK) {
                    float values[BLOCK];
                    read_block(&copy, &tile, row, column, values);
                    largest = fmaxf(largest, row_magnitude(values, BLOCK));
                }
            }
        }
        maxima[part] = largest;
    }
}

// Quantizes a matrix to NVFP4. The buffers of the per-tensor scales hold the amax until all tiles are quantized, then
// the inverse scale.
void host_quantize_nv(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct quantize_shape *shape = &op->shape.quantize;
    float *scales[]   = {buffers[QUANTIZE_TENSOR_SCALE].data, buffers[QUANTIZE_TRANSPOSED_TENSOR_SCALE].data};
    void  *inverses[] = {buffers[QUANTIZE_INVERSE_SCALE].data, buffers[QUANTIZE_TRANSPOSED_INVERSE_SCALE].data};
    float  largest[2] = {0, 0};
    if (scales[0] != NULL || !shape->transforms) {
        largest[0] = largest[1] = host_find_magnitude(backend, op, &buffers[QUANTIZE_IN]);
    }
    if (scales[1] != NULL && shape->transforms) {
        host_run_loop(backend, op, buffers, find_parts, HOST_PARTS);
        largest[1] = row_maximum(host_shared(backend->state, op), HOST_PARTS);
    }
    for (int i = 0; i < 2; i++) {
        if (scales[i] != NULL) {
            int64_t rows = i == 0 ? shape->rows : shape->columns, columns = i == 0 ? shape->columns : shape->rows;
            *scales[i] = largest[i];
            memset(inverses[i], 0, (size_t)scaling_inverses(SCALING_NV, rows, columns));
        }
    }
    host_run_loop(backend, op, buffers, quantize_tiles, scaling_sides(shape->rows) * scaling_sides(shape->columns));
    for (int i = 0; i < 2; i++) {
        if (scales[i] != NULL) {
            *scales[i] = 1 / fp4_tensor_scale(largest[i]);
        }
    }
}
