// SPDX-License-Identifier: MIT
// Copies of a matrix in FP8, as it is and transposed.
#include <math.h>

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

// The largest magnitude of each part lies in front.
static void magnitude_parts(void *context, int64_t first, int64_t last, int thread)
{
    const struct work           *work  = context;
    const struct buffer         *in    = &work->buffers[QUANTIZE_IN];
    const struct quantize_shape *shape = &work->op->shape.quantize;
    int64_t                      total = shape->rows * shape->columns, chunks = tiles_of(total, CHUNK);
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
    float                       *amax  = buffers[QUANTIZE_AMAX].data;
    enum dtype format  = buffers[buffers[QUANTIZE_OUT].data != NULL ? QUANTIZE_OUT : QUANTIZE_TRANSPOSED].dtype;
    float      largest = 0;
    if (given == NULL || amax != NULL) {
        host_run_loop(backend, op, buffers, magnitude_parts, HOST_PARTS);
        largest = row_maximum(host->scratch, HOST_PARTS);
    }
    if (amax != NULL) {
        *amax = fmaxf(*amax, largest);
    }
    host->scratch[0]                        = given != NULL ? *given : fp8_scale(format, largest);
    *(float *)buffers[QUANTIZE_FACTOR].data = 1 / host->scratch[0];
    host_run_loop(backend, op, buffers, quantize_tiles,
                  tiles_of(shape->rows, TILE_ROWS) * tiles_of(shape->columns, TILE_COLUMNS));
}
