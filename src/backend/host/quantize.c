// SPDX-License-Identifier: MIT
// Copies of a matrix in FP8, as it is and transposed, and the scales for them.
#include <math.h>
#include <string.h>

#include "gswbench/fp8.h"
#include "internal.h"

// Magnitudes are looked for in chunks. Copies are made in tiles, of whose transpose every cache line is filled at once.
enum { CHUNK = 1024, TILE_ROWS = 64, TILE_COLUMNS = 256 };

int64_t host_quantize_floats(const struct op *op, int threads)
{
    (void)op;
    (void)threads;
    return HOST_PARTS + CHUNK;
}

// Behind what lies in front for all threads, [HOST_PARTS].
static float *chunk_of_thread(const struct work *work, int thread)
{
    return work->host->scratch + HOST_PARTS + (int64_t)thread * CHUNK;
}

static int64_t tiles_of(int64_t count, int64_t tile)
{
    return (count + tile - 1) / tile;
}

// The largest magnitude of each part of the first operand lies in front.
static void magnitude_parts(void *context, int64_t first, int64_t last, int thread)
{
    const struct work   *work  = context;
    const struct buffer *in    = &work->buffers[0];
    int64_t              total = in->elements, chunks = tiles_of(total, CHUNK);
    for (int64_t part = first; part < last; part++) {
        float   largest = 0;
        int64_t end     = host_minimum(chunks * (part + 1) / HOST_PARTS * CHUNK, total);
        for (int64_t at = chunks * part / HOST_PARTS * CHUNK; at < end; at += CHUNK) {
            int64_t      count  = host_minimum(CHUNK, end - at);
            const float *values = row_read(in, at, count, chunk_of_thread(work, thread));
            for (int64_t i = 0; i < count; i++) {
                largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;    // NaN is no magnitude
            }
        }
        work->host->scratch[part] = largest;
    }
}

// The largest magnitude of the first operand.
static float find_magnitude(struct backend *backend, const struct op *op, const struct buffer buffers[])
{
    const struct host *host = backend->state;
    host_run_loop(backend, op, buffers, magnitude_parts, HOST_PARTS);
    return row_maximum(host->scratch, HOST_PARTS);
}

// The scale lies in front.
static void quantize_tiles(void *context, int64_t first, int64_t last, int thread)
{
    const struct work           *work  = context;
    const struct quantize_shape *shape = &work->op->shape.quantize;
    const struct buffer         *out = &work->buffers[QUANTIZE_OUT], *transposed = &work->buffers[QUANTIZE_TRANSPOSED];
    enum dtype                   format  = out->data != NULL ? out->dtype : transposed->dtype;
    float                        scale   = work->host->scratch[0];
    int64_t                      columns = tiles_of(shape->columns, TILE_COLUMNS);
    for (int64_t tile = first; tile < last; tile++) {
        int64_t column = tile % columns * TILE_COLUMNS, count = host_minimum(TILE_COLUMNS, shape->columns - column);
        int64_t begin = tile / columns * TILE_ROWS, end = host_minimum(begin + TILE_ROWS, shape->rows);
        for (int64_t row = begin; row < end; row++) {
            int64_t      at     = row * shape->columns + column;
            const float *values = row_read(&work->buffers[QUANTIZE_IN], at, count, chunk_of_thread(work, thread));
            for (int64_t i = 0; i < count; i++) {
                uint8_t code = fp8_from_float(format, values[i] * scale);
                if (out->data != NULL) {
                    ((uint8_t *)out->data)[at + i] = code;
                }
                if (transposed->data != NULL) {
                    ((uint8_t *)transposed->data)[(column + i) * shape->rows + row] = code;
                }
            }
        }
    }
}

void host_quantize(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct host           *host  = backend->state;
    const struct quantize_shape *shape = &op->shape.quantize;
    const float                 *given = buffers[QUANTIZE_SCALE].data;
    float                       *amax = buffers[QUANTIZE_AMAX].data, *factor = buffers[QUANTIZE_FACTOR].data;
    float                        largest = given == NULL || amax != NULL ? find_magnitude(backend, op, buffers) : 0;
    enum dtype format = buffers[buffers[QUANTIZE_OUT].data != NULL ? QUANTIZE_OUT : QUANTIZE_TRANSPOSED].dtype;
    host->scratch[0]  = given != NULL ? *given : fp8_scale(format, largest);
    if (amax != NULL) {
        *amax = fmaxf(*amax, largest);
    }
    if (factor != NULL) {
        *factor = 1 / host->scratch[0];
    }
    host_run_loop(backend, op, buffers, quantize_tiles,
                  tiles_of(shape->rows, TILE_ROWS) * tiles_of(shape->columns, TILE_COLUMNS));
}

// Bytes, tile by tile as above.
static void transpose_tiles(void *context, int64_t first, int64_t last, int thread)
{
    const struct work       *work    = context;
    const struct rows_shape *shape   = &work->op->shape.rows;
    const uint8_t           *in      = work->buffers[TRANSPOSE_IN].data;
    uint8_t                 *out     = work->buffers[TRANSPOSE_OUT].data;
    int64_t                  columns = tiles_of(shape->columns, TILE_COLUMNS);
    (void)thread;
    for (int64_t tile = first; tile < last; tile++) {
        int64_t begin = tile / columns * TILE_ROWS, end = host_minimum(begin + TILE_ROWS, shape->rows);
        int64_t left = tile % columns * TILE_COLUMNS, right = host_minimum(left + TILE_COLUMNS, shape->columns);
        for (int64_t row = begin; row < end; row++) {
            for (int64_t column = left; column < right; column++) {
                out[column * shape->rows + row] = in[row * shape->columns + column];
            }
        }
    }
}

void host_transpose(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    host_run_loop(backend, op, buffers, transpose_tiles,
                  tiles_of(shape->rows, TILE_ROWS) * tiles_of(shape->columns, TILE_COLUMNS));
}

void host_magnitude(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    float *amax = buffers[MAGNITUDE_AMAX].data;
    *amax       = fmaxf(*amax, find_magnitude(backend, op, buffers));
}

void host_rescale(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
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
        scale[slot]  = fp8_rescale(scale[slot], shape->target, largest);
        factor[slot] = 1 / scale[slot];
        amax[slot]   = 0;
    }
}
