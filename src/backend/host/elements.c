// SPDX-License-Identifier: MIT
// Ops on flat arrays: cast, clear, amax, gradient norm and clipping, AdamW and Muon; and the column sums of a matrix.
#include <math.h>
#include <string.h>

#include "gswbench/arithmetic.h"
#include "internal.h"

// Elements of a chunk, and chunks of scratch per thread. These chunks fit in the L1 cache in fp32.
enum { CHUNK = 1024, ADAMW_ROWS = 5 };

static int64_t count_chunks(const struct op *op)
{
    return number_groups(op->shape.elements.elements, CHUNK);
}

static int64_t floats(const struct op *op)
{
    (void)op;
    return ADAMW_ROWS * CHUNK;
}

static void cast_chunks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *in = &loop->buffers[CAST_IN], *out = &loop->buffers[CAST_OUT];
    float               *space = host_space(loop, thread);
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t at    = chunk * CHUNK;
        int64_t count = number_min(CHUNK, loop->op->shape.elements.elements - at);
        row_store(out, at, count, row_read(in, at, count, space), loop->op->accumulates);
    }
}

const struct host_op host_cast = {.body = cast_chunks, .count = count_chunks, .each = floats};

static void clear(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    row_clear(&buffers[CLEAR_OUT], 0, op->shape.elements.elements);
}

const struct host_op host_clear = {.run = clear};

// Writes one double per part (HOST_PARTS) to shared scratch: its sum of squares for OP_SQUARE_SUM, else its amax.
static void reduce_parts(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *in      = &loop->buffers[0];
    int64_t              chunks  = number_groups(in->elements, CHUNK);
    double              *results = host_shared(loop->host, loop->op);
    float               *space   = host_space(loop, thread);
    for (int64_t part = first; part < last; part++) {
        results[part] = 0;
        int64_t end   = number_min(chunks * (part + 1) / HOST_PARTS * CHUNK, in->elements);
        for (int64_t at = chunks * part / HOST_PARTS * CHUNK; at < end; at += CHUNK) {
            int64_t      count  = number_min(CHUNK, end - at);
            const float *values = row_read(in, at, count, space);
            results[part]       = loop->op->kind == OP_SQUARE_SUM ? results[part] + row_deviation(values, 0, count)
                                                                  : fmax(results[part], (double)row_magnitude(values, count));
        }
    }
}

float host_find_magnitude(struct backend *backend, const struct op *op, const struct buffer *in)
{
    host_run_loop(backend, op, in, reduce_parts, HOST_PARTS);
    const double *maxima  = host_shared(backend->state, op);
    double        largest = 0;
    for (int part = 0; part < HOST_PARTS; part++) {
        largest = fmax(largest, maxima[part]);
    }
    return (float)largest;
}

static void raise_magnitude(struct backend *backend, const struct op *op, const struct buffer *in, float *magnitude)
{
    *magnitude = fmaxf(*magnitude, host_find_magnitude(backend, op, in));
}

static void find_magnitude(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    raise_magnitude(backend, op, &buffers[MAGNITUDE_IN], buffers[MAGNITUDE_AMAX].data);
}

const struct host_op host_magnitude = {.run = find_magnitude, .each = floats, .shared = host_part_floats};

static void square_sum(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, reduce_parts, HOST_PARTS);
    const double *sums = host_shared(backend->state, op);
    float        *out  = buffers[SQUARE_SUM_OUT].data;
    double        sum  = op->accumulates ? (double)*out : 0;
    for (int part = 0; part < HOST_PARTS; part++) {
        sum += sums[part];
    }
    *out = (float)sum;
}

const struct host_op host_square_sum = {.run = square_sum, .each = floats, .shared = host_part_floats};

static void clip(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    (void)backend;
    double norm                        = sqrt(row_sum(buffers[CLIP_PARTIALS].data, op->shape.elements.elements));
    *(float *)buffers[CLIP_NORM].data  = (float)norm;
    *(float *)buffers[CLIP_SCALE].data = arithmetic_clip_scale(norm, (double)op->shape.elements.limit);
}

const struct host_op host_clip = {.run = clip};

static struct arithmetic_adamw adamw_constants(const struct buffer buffers[])
{
    const float *hyper = buffers[ADAMW_HYPER].data;
    return (struct arithmetic_adamw){
        .gradient_scale = *(const float *)buffers[ADAMW_SCALE].data,
        .keep           = 1.0f - hyper[HYPER_LEARNING_RATE] * hyper[HYPER_DECAY],
        .first_rate     = 1.0f - hyper[HYPER_BETA1],
        .second_rate    = 1.0f - hyper[HYPER_BETA2],
        .beta2          = hyper[HYPER_BETA2],
        .step_size      = hyper[HYPER_LEARNING_RATE] / hyper[HYPER_CORRECTION1],
        .inverse_root   = (float)(1 / sqrt((double)hyper[HYPER_CORRECTION2])),
        .epsilon        = hyper[HYPER_EPSILON],
    };
}

// Returns elements in fp32 that may be modified: in the buffer itself if it is fp32, else converted to `space`.
static float *read_for_update(const struct buffer *buffer, int64_t at, int64_t count, float *space)
{
    row_read(buffer, at, count, space);
    return row_open(buffer, at, space);
}

static void adamw_chunks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer    *weight       = &loop->buffers[ADAMW_WEIGHT];
    bool                    has_master   = loop->buffers[ADAMW_MASTER].data != NULL;
    const struct buffer    *master       = has_master ? &loop->buffers[ADAMW_MASTER] : weight;
    const struct buffer    *first_moment = &loop->buffers[ADAMW_FIRST], *second_moment = &loop->buffers[ADAMW_SECOND];
    struct arithmetic_adamw constants = adamw_constants(loop->buffers);
    float                  *space     = host_space(loop, thread);
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t      at       = chunk * CHUNK;
        int64_t      count    = number_min(CHUNK, loop->op->shape.elements.elements - at);
        const float *gradient = row_read(&loop->buffers[ADAMW_GRADIENT], at, count, space);
        float       *values   = read_for_update(master, at, count, space + CHUNK);
        float       *m        = read_for_update(first_moment, at, count, space + 2 * CHUNK);
        float       *v        = read_for_update(second_moment, at, count, space + 3 * CHUNK);
        for (int64_t i = 0; i < count; i++) {
            arithmetic_adamw_update(&constants, gradient[i], &values[i], &m[i], &v[i]);
        }
        row_close(first_moment, at, count, m);
        row_close(second_moment, at, count, v);
        row_close(master, at, count, values);
        if (has_master && weight->data != NULL) {
            row_close(weight, at, count, values);
        }
    }
}

static void adamw(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    if (!isnan(*(const float *)buffers[ADAMW_SCALE].data)) {
        host_run_loop(backend, op, buffers, adamw_chunks, count_chunks(op));
    }
    if (buffers[ADAMW_AMAX].data != NULL) {
        raise_magnitude(backend, op, &buffers[ADAMW_WEIGHT], buffers[ADAMW_AMAX].data);
    }
}

const struct host_op host_adamw = {.run = adamw, .each = floats, .shared = host_part_floats};

static void momentum_chunks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *momentum = &loop->buffers[MOMENTUM_FIRST], *out = &loop->buffers[MOMENTUM_OUT];
    float               *space = host_space(loop, thread), *result = space + 2 * CHUNK;
    float                scale = *(const float *)loop->buffers[MOMENTUM_SCALE].data;
    float                decay = loop->op->shape.elements.factor;
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t      at       = chunk * CHUNK;
        int64_t      count    = number_min(CHUNK, loop->op->shape.elements.elements - at);
        const float *gradient = row_read(&loop->buffers[MOMENTUM_GRADIENT], at, count, space);
        float       *m        = read_for_update(momentum, at, count, space + CHUNK);
        for (int64_t i = 0; i < count; i++) {
            result[i] = isnan(scale) ? 0 : arithmetic_momentum(scale * gradient[i], decay, &m[i]);
        }
        row_close(momentum, at, count, m);
        row_store(out, at, count, result, false);
    }
}

const struct host_op host_momentum = {.body = momentum_chunks, .count = count_chunks, .each = floats};

static void normalize_chunks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    float *space  = host_space(loop, thread);
    float  factor = arithmetic_normal_factor(*(const float *)loop->buffers[NORMALIZE_SUM].data);
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t at    = chunk * CHUNK;
        int64_t count = number_min(CHUNK, loop->op->shape.elements.elements - at);
        row_scale(space + CHUNK, row_read(&loop->buffers[NORMALIZE_IN], at, count, space), count, factor);
        row_store(&loop->buffers[NORMALIZE_OUT], at, count, space + CHUNK, false);
    }
}

const struct host_op host_normalize = {.body = normalize_chunks, .count = count_chunks, .each = floats};

static void muon_chunks(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct buffer *weight = &loop->buffers[MUON_WEIGHT], *master = &loop->buffers[MUON_MASTER];
    const struct buffer *kept  = master->data != NULL ? master : weight;
    const float         *hyper = loop->buffers[MUON_HYPER].data;
    float *space = host_space(loop, thread), keep = 1.0f - hyper[HYPER_LEARNING_RATE] * hyper[HYPER_DECAY];
    float  step = hyper[HYPER_LEARNING_RATE] * loop->op->shape.elements.factor;
    for (int64_t chunk = first; chunk < last; chunk++) {
        int64_t      at     = chunk * CHUNK;
        int64_t      count  = number_min(CHUNK, loop->op->shape.elements.elements - at);
        const float *update = row_read(&loop->buffers[MUON_UPDATE], at, count, space);
        float       *values = read_for_update(kept, at, count, space + CHUNK);
        for (int64_t i = 0; i < count; i++) {
            values[i] = values[i] * keep - step * update[i];
        }
        row_close(kept, at, count, values);
        if (master->data != NULL && weight->data != NULL) {
            row_close(weight, at, count, values);
        }
    }
}

static void muon(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    if (!isnan(*(const float *)buffers[MUON_SCALE].data)) {
        host_run_loop(backend, op, buffers, muon_chunks, count_chunks(op));
    }
}

const struct host_op host_muon = {.run = muon, .each = floats};

// The column sums of a matrix (the gradient of a bias): columns are divided among the threads, and each column is added
// in row order in double. Scratch per thread: a row in fp32, and the sums in double.
static void sum_columns(const struct loop *loop, int64_t first, int64_t last, int thread)
{
    const struct rows_shape *shape = &loop->op->shape.rows;
    int64_t                  count = last - first;
    double                  *sums  = host_space(loop, thread);
    float                   *space = (float *)(sums + count);
    memset(sums, 0, (size_t)count * sizeof(*sums));
    for (int64_t row = 0; row < shape->rows; row++) {
        const float *values = row_read(&loop->buffers[COLUMN_SUM_IN], row * shape->columns + first, count, space);
        for (int64_t i = 0; i < count; i++) {
            sums[i] += (double)values[i];
        }
    }
    row_store_sums(&loop->buffers[COLUMN_SUM_OUT], first, count, sums, space, loop->op->accumulates);
}

static void sum_all_columns(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    host_run_loop(backend, op, buffers, sum_columns, op->shape.rows.columns);
}

const struct host_op host_column_sum = {.run = sum_all_columns, .rows = 3};
