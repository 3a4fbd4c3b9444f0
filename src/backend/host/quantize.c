// SPDX-License-Identifier: MIT
// Quantizes a matrix to FP8, with an optional transposed copy and the scales; the transpose of an FP8 matrix; and the
// update of delayed scales.
#include <math.h>
#include <string.h>

#include "gswbench/fp8.h"
#include "internal.h"

// Elements of a 128 x 128 tile. A thread quantizes one tile at a time. A tile is also one block of SCALING_128X128.
enum { TILE = SCALING_SIDE * SCALING_SIDE };
// Tile of the transpose of an FP8 matrix, large enough to fill whole cache lines of the output.
enum { TILE_ROWS = 64, TILE_COLUMNS = 256 };

static int64_t floats(const struct op *op)
{
    (void)op;
    return 2 * TILE;
}

// Transposes a tile, in groups of rows, so that the cache lines that it reads stay in the cache.
static struct panel transpose(const struct panel *tile, float *space)
{
    enum { GROUP = 16 };
    for (int64_t group = 0; group < tile->rows; group += GROUP) {
        int64_t end = number_min(group + GROUP, tile->rows);
        for (int64_t column = 0; column < tile->columns; column++) {
            for (int64_t row = group; row < end; row++) {
                space[column * tile->rows + row] = tile->data[row * tile->leading + column];
            }
        }
    }
    return (struct panel){space, tile->rows, tile->columns, tile->rows, false};
}

// An FP8 copy of the matrix: row-wise or transposed.
struct copy {
    struct buffer codes, factors;
    int64_t       rows, columns;
    enum scaling  scaling;
    float         scale;    // per-tensor scale
};

static struct copy copy_of(const struct loop *loop, bool is_transposed)
{
    const struct quantize_shape *shape = &loop->op->shape.quantize;
    return (struct copy){
        .codes   = loop->buffers[is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT],
        .factors = loop->buffers[is_transposed ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE],
        .rows    = is_transposed ? shape->columns : shape->rows,
        .columns = is_transposed ? shape->rows : shape->columns,
        .scaling = (enum scaling)shape->scaling,
        .scale   = *(const float *)host_shared(loop->host, loop->op),
    };
}

static float scale_part(const struct copy *copy, int64_t row, int64_t column, float magnitude)
{
    int64_t at = scaling_inverse_at(copy->scaling, copy->rows, copy->columns, row, column);
    if (copy->scaling == SCALING_MX) {
        uint8_t factor                      = fp8_block_factor(copy->codes.format, magnitude);
        ((uint8_t *)copy->factors.data)[at] = factor;
        return fp8_block_scale(factor);
    }
    float scale                       = fp8_scale(copy->codes.format, magnitude);
    ((float *)copy->factors.data)[at] = 1 / scale;
    return scale;
}

static void store_codes(const struct buffer *codes, int64_t at, const float *values, int64_t count, float scale)
{
    uint8_t    *to     = (uint8_t *)codes->data + at;
    enum format format = codes->format;
    for (int64_t i = 0; i < count; i++) {
        to[i] = fp8_from_float(format, values[i] * scale);
    }
}

// Quantizes a tile with MX scales. One tile of the MX scale layout (512 scales) covers the same 128 x 128 elements. It
// is cleared first, so that the scales of elements beyond the matrix are 0.
static void store_blocks(const struct copy *copy, const struct panel *tile, int64_t row, int64_t column)
{
    memset((uint8_t *)copy->factors.data + scaling_block_at(copy->columns, row, column), 0, SCALING_TILE);
    for (int64_t i = 0; i < tile->rows; i++) {
        for (int64_t j = 0; j < tile->columns; j += SCALING_BLOCK) {
            const float *values = tile->data + i * tile->leading + j;
            int64_t      count  = number_min(SCALING_BLOCK, tile->columns - j);
            float        scale  = scale_part(copy, row + i, column + j, row_magnitude(values, count));
            store_codes(&copy->codes, (row + i) * copy->columns + column + j, values, count, scale);
        }
    }
}

// Stores the inverse scale of a row (SCALING_ROWS). All row scales are stored before any tile is quantized.
static void store_factor(const struct copy *copy, int64_t row, float magnitude)
{
    ((float *)copy->factors.data)[row] = 1 / fp8_row_scale(copy->codes.format, magnitude);
}

static void scale_rows(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct copy copy  = copy_of(loop, false);
    float            *space = host_space(loop, thread);
    for (int64_t row = first; row < last; row++) {
        float largest = 0;
        for (int64_t column = 0; column < copy.columns; column += TILE) {
            int64_t      count = number_min(TILE, copy.columns - column);
            const float *chunk = row_read(&loop->buffers[QUANTIZE_IN], row * copy.columns + column, count, space);
            largest            = fmaxf(largest, row_magnitude(chunk, count));
        }
        store_factor(&copy, row, largest);
    }
}

// Rows of the transposed copy are columns of the input, so a thread reads 128 adjacent columns at a time.
static void scale_columns(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct copy copy  = copy_of(loop, true);
    float            *space = host_space(loop, thread);
    for (int64_t strip = first; strip < last; strip++) {
        float   largest[SCALING_SIDE] = {0};
        int64_t column = strip * SCALING_SIDE, count = number_min(SCALING_SIDE, copy.rows - column);
        for (int64_t row = 0; row < copy.columns; row++) {
            const float *values = row_read(&loop->buffers[QUANTIZE_IN], row * copy.rows + column, count, space);
            for (int64_t i = 0; i < count; i++) {
                largest[i] = fmaxf(largest[i], fabsf(values[i]));
            }
        }
        for (int64_t i = 0; i < count; i++) {
            store_factor(&copy, column + i, largest[i]);
        }
    }
}

// Quantizes the tile at this row and column of the copy.
static void store_tile(const struct copy *copy, const struct panel *tile, int64_t row, int64_t column)
{
    float scale = copy->scale;
    if (copy->scaling == SCALING_MX) {
        store_blocks(copy, tile, row, column);
        return;
    }
    if (copy->scaling == SCALING_128X128) {
        float largest = 0;
        for (int64_t i = 0; i < tile->rows; i++) {
            largest = fmaxf(largest, row_magnitude(tile->data + i * tile->leading, tile->columns));
        }
        scale = scale_part(copy, row, column, largest);
    }
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *values = tile->data + i * tile->leading;
        if (copy->scaling == SCALING_1X128) {
            scale = scale_part(copy, row + i, column, row_magnitude(values, tile->columns));
        } else if (copy->scaling == SCALING_ROWS) {
            scale = 1 / ((const float *)copy->factors.data)[row + i];    // exact: a power of two
        }
        store_codes(&copy->codes, (row + i) * copy->columns + column, values, tile->columns, scale);
    }
}

// Quantizes tiles for both copies. The per-tensor scale is the first float of shared scratch.
static void quantize_tiles(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct copy copy = copy_of(loop, false), transposed = copy_of(loop, true);
    float            *space = host_space(loop, thread);
    for (int64_t i = first; i < last; i++) {
        int64_t      row, column;
        struct panel tile = host_read_tile(loop, i, &row, &column, space);
        if (copy.codes.data != NULL) {
            store_tile(&copy, &tile, row, column);
        }
        if (transposed.codes.data != NULL) {
            tile = transpose(&tile, space + TILE);
            store_tile(&transposed, &tile, column, row);
        }
    }
}

// Returns the per-tensor scale: SCALE if it is given, otherwise the scale for the matrix's amax. Also raises AMAX for
// delayed scaling, and writes INVERSE_SCALE.
static float choose_scale(struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    const float *given = buffers[QUANTIZE_SCALE].data;
    float       *amax = buffers[QUANTIZE_AMAX].data, *factor = buffers[QUANTIZE_INVERSE_SCALE].data;
    float        largest = given == NULL || amax != NULL ? host_find_magnitude(backend, op, &buffers[QUANTIZE_IN]) : 0;
    enum format  format  = buffers[buffers[QUANTIZE_OUT].data != NULL ? QUANTIZE_OUT : QUANTIZE_TRANSPOSED].format;
    float        scale   = given != NULL ? *given : fp8_scale(format, largest);
    if (amax != NULL) {
        *amax = fmaxf(*amax, largest);
    }
    if (factor != NULL) {
        *factor = 1 / scale;
    }
    return scale;
}

static void quantize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct quantize_shape *shape = &op->shape.quantize;
    if (scaling_is_nv((enum scaling)shape->scaling)) {
        host_quantize_nv(backend, op, buffers);
        return;
    }
    if (shape->scaling == SCALING_WHOLE) {
        *(float *)host_shared(backend->state, op) = choose_scale(backend, op, buffers);
    }
    if (shape->scaling == SCALING_ROWS && buffers[QUANTIZE_OUT].data != NULL) {
        host_run_loop(backend, op, buffers, scale_rows, shape->rows);
    }
    if (shape->scaling == SCALING_ROWS && buffers[QUANTIZE_TRANSPOSED].data != NULL) {
        host_run_loop(backend, op, buffers, scale_columns, scaling_sides(shape->columns));
    }
    host_run_loop(backend, op, buffers, quantize_tiles, scaling_sides(shape->rows) * scaling_sides(shape->columns));
}

const struct host_op host_quantize = {.run = quantize, .each = floats, .shared = host_part_floats};

static void transpose_tiles(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct rows_shape *shape   = &loop->op->shape.rows;
    const uint8_t           *in      = loop->buffers[TRANSPOSE_IN].data;
    uint8_t                 *out     = loop->buffers[TRANSPOSE_OUT].data;
    int64_t                  columns = number_groups(shape->columns, TILE_COLUMNS);
    (void)thread;
    for (int64_t tile = first; tile < last; tile++) {
        int64_t begin = tile / columns * TILE_ROWS, end = number_min(begin + TILE_ROWS, shape->rows);
        int64_t left = tile % columns * TILE_COLUMNS, right = number_min(left + TILE_COLUMNS, shape->columns);
        for (int64_t row = begin; row < end; row++) {
            for (int64_t column = left; column < right; column++) {
                out[column * shape->rows + row] = in[row * shape->columns + column];
            }
        }
    }
}

static void run_transpose(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    host_run_loop(backend, op, buffers, transpose_tiles,
                  number_groups(shape->rows, TILE_ROWS) * number_groups(shape->columns, TILE_COLUMNS));
}

const struct host_op host_transpose = {.run = run_transpose};

static void rescale(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rescale_shape *shape = &op->shape.rescale;
    float                      *amax = buffers[RESCALE_AMAX].data, *history = buffers[RESCALE_HISTORY].data;
    float                      *scale = buffers[RESCALE_SCALE].data, *factor = buffers[RESCALE_FACTOR].data;
    (void)backend;
    for (int64_t slot = 0; slot < shape->slots; slot++) {
        float largest = amax[slot];
        if (history != NULL) {
            float *row = history + slot * shape->history;
            memmove(row + 1, row, (size_t)(shape->history - 1) * sizeof(*row));
            row[0]  = amax[slot];
            largest = row_maximum(row, shape->history);
        }
        scale[slot]  = scaling_renew(scale[slot], shape->target, largest);
        factor[slot] = 1 / scale[slot];
        amax[slot]   = 0;
    }
}

const struct host_op host_rescale = {.run = rescale};
