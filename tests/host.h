// SPDX-License-Identifier: MIT
// What the tests of the host backend share: operands, running one op, and every forward pass in plain double loops.
#ifndef GSWBENCH_TESTS_HOST_H
#define GSWBENCH_TESTS_HOST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/model.h"
#include "gswbench/random.h"

// Largest error relative to the largest value: of fp32 results, and of those stored in bf16 (half a unit is 2^-9).
static inline double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 2e-6 : 4.5e-3;
}

static inline struct buffer make_buffer(enum dtype dtype, int64_t elements)
{
    return (struct buffer){
        .data = calloc((size_t)elements + 1, (size_t)dtype_bytes(dtype)), .elements = elements, .dtype = dtype};
}

static inline double get(const struct buffer *buffer, int64_t i)
{
    switch (buffer->dtype) {
    case DTYPE_F32:
        return (double)((const float *)buffer->data)[i];
    case DTYPE_BF16:
        return (double)bf16_to_float(((const bf16 *)buffer->data)[i]);
    default:
        return (double)((const int32_t *)buffer->data)[i];
    }
}

static inline void set(const struct buffer *buffer, int64_t i, double value)
{
    if (buffer->dtype == DTYPE_F32) {
        ((float *)buffer->data)[i] = (float)value;
    } else if (buffer->dtype == DTYPE_BF16) {
        ((bf16 *)buffer->data)[i] = bf16_from_float((float)value);
    } else {
        ((int32_t *)buffer->data)[i] = (int32_t)value;
    }
}

// Close to normal with the given deviation.
static inline struct buffer make_random(enum dtype dtype, int64_t elements, uint64_t seed, double deviation)
{
    struct buffer buffer = make_buffer(dtype, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&buffer, i, deviation * (double)random_normal(random_key(seed, 0), (uint64_t)i));
    }
    return buffer;
}

static inline struct buffer make_tokens(int64_t elements, uint64_t seed, uint32_t bound)
{
    struct buffer buffer = make_buffer(DTYPE_I32, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&buffer, i, random_below(random_key(seed, 1), 0, (uint64_t)i, bound));
    }
    return buffer;
}

// NaN everywhere, so that an element that is not written is seen; one more guards the end.
static inline struct buffer make_output(enum dtype dtype, int64_t elements)
{
    struct buffer buffer = make_buffer(dtype, elements);
    for (int64_t i = 0; i <= elements; i++) {
        set(&buffer, i, NAN);
    }
    return buffer;
}

// Copies the values of a buffer into a new array of doubles; the caller frees.
static inline double *values_of(const struct buffer *buffer)
{
    double *values = malloc(sizeof(*values) * (size_t)(buffer->elements + 1));
    for (int64_t i = 0; i < buffer->elements; i++) {
        values[i] = get(buffer, i);
    }
    return values;
}

// Runs one op on the host backend. Scratch is poisoned by use; buffers end with a guard where make_output made them.
static inline void run_op(const struct op *op, const struct buffer *buffers, int threads)
{
    struct backend backend;
    status         opened = backend_open(&backend, "host", 0, threads);
    cr_assert_not(failed(&opened), "%s", opened.text);
    backend_reserve_scratch(&backend, backend.ops->scratch_bytes(&backend, op));
    backend.ops->run[op->kind](&backend, op, buffers);
    backend_close(&backend);
}

static inline void expect_close(const struct buffer *result, const double *expected, double bound, const char *what)
{
    double largest = 1e-30;
    for (int64_t i = 0; i < result->elements; i++) {
        largest = fmax(largest, fabs(expected[i]));
    }
    for (int64_t i = 0; i < result->elements; i++) {
        double error = fabs(get(result, i) - expected[i]) / largest;
        cr_assert(error <= bound, "%s: element %lld of %lld is %.9g, not %.9g", what, (long long)i,
                  (long long)result->elements, get(result, i), expected[i]);
    }
}

static inline void free_buffers(struct buffer *buffers)
{
    for (int i = 0; i < OP_OPERANDS; i++) {
        free(buffers[i].data);
    }
}

// The references: plain loops in double, over the shapes of op.h.

static inline void reference_gemm(const struct gemm_shape *shape, const double *a, const double *b, double *c)
{
    for (int64_t i = 0; i < shape->m; i++) {
        for (int64_t j = 0; j < shape->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < shape->k; k++) {
                sum += (shape->transpose_a ? a[k * shape->m + i] : a[i * shape->k + k]) *
                       (shape->transpose_b ? b[j * shape->k + k] : b[k * shape->n + j]);
            }
            c[i * shape->n + j] = sum;
        }
    }
}

static inline void reference_norm(const struct rows_shape *shape, const double *x, const double *weight,
                                  const double *bias, double *out)
{
    for (int64_t row = 0; row < shape->rows; row++, x += shape->columns, out += shape->columns) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < shape->columns && shape->variant != NORM_RMS; i++) {
            mean += x[i] / (double)shape->columns;
        }
        for (int64_t i = 0; i < shape->columns; i++) {
            variance += (x[i] - mean) * (x[i] - mean) / (double)shape->columns;
        }
        for (int64_t i = 0; i < shape->columns; i++) {
            double factor = weight[i] + (shape->variant == NORM_LAYER_1P ? 1 : 0);
            out[i]        = (x[i] - mean) / sqrt(variance + (double)shape->epsilon) * factor;
            out[i] += shape->variant == NORM_RMS ? 0 : bias[i];
        }
    }
}

static inline double reference_gate(double x, int32_t variant)
{
    switch (variant) {
    case ACTIVATION_SWIGLU:
        return x / (1 + exp(-x));
    case ACTIVATION_RELU2:
        return x > 0 ? x * x : 0;
    default:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
}

static inline bool reference_is_gated(int32_t variant)
{
    return variant == ACTIVATION_SWIGLU || variant == ACTIVATION_GEGLU;
}

static inline void reference_activation(const struct rows_shape *shape, const double *in, double *out)
{
    int64_t width = reference_is_gated(shape->variant) ? 2 * shape->columns : shape->columns;
    for (int64_t row = 0; row < shape->rows; row++) {
        for (int64_t i = 0; i < shape->columns; i++) {
            const double *x               = in + row * width + i;
            double        up              = width > shape->columns ? x[shape->columns] : 1;
            out[row * shape->columns + i] = reference_gate(*x, shape->variant) * up;
        }
    }
}

// Splits and rotates by multiplying pairs, as complex numbers, by cosine + i sine.
static inline void reference_rope(const struct attention_shape *shape, const double *table, const double *packed,
                                  double *query, double *key_value)
{
    int64_t heads = shape->heads + 2 * shape->kv_heads, half = shape->rotary / 2, width = shape->head_dim;
    for (int64_t token = 0; token < shape->batch * shape->sequence; token++) {
        for (int64_t head = 0; head < heads; head++) {
            const double *in  = packed + (token * heads + head) * width;
            double       *out = head < shape->heads ? query + (token * shape->heads + head) * width
                                                    : key_value + (token * 2 * shape->kv_heads + head - shape->heads) * width;
            memcpy(out, in, sizeof(*out) * (size_t)width);
            for (int64_t i = 0; i < half && head < shape->heads + shape->kv_heads; i++) {
                const double *angle = table + (token % shape->sequence * half + i) * 2;
                out[i]              = in[i] * angle[0] - in[i + half] * angle[1];
                out[i + half]       = in[i] * angle[1] + in[i + half] * angle[0];
            }
        }
    }
}

// statistics may be NULL.
static inline void reference_attention(const struct attention_shape *shape, const double *query,
                                       const double *key_value, double *out, double *statistics)
{
    int64_t width = shape->head_dim, group = shape->heads / shape->kv_heads;
    for (int64_t i = 0; i < shape->batch * shape->heads * shape->sequence; i++) {
        int64_t       position = i % shape->sequence, head = i / shape->sequence % shape->heads;
        int64_t       start = i / shape->sequence / shape->heads * shape->sequence;
        int64_t       seen  = shape->causal ? position + 1 : shape->sequence;
        const double *q     = query + ((start + position) * shape->heads + head) * width;
        double       *o     = out + ((start + position) * shape->heads + head) * width;
        double        sum   = 0;
        memset(o, 0, sizeof(*o) * (size_t)width);
        for (int64_t j = 0; j < seen; j++) {
            const double *key   = key_value + ((start + j) * 2 * shape->kv_heads + head / group) * width;
            const double *value = key + shape->kv_heads * width;
            double        score = 0;
            for (int64_t d = 0; d < width; d++) {
                score += q[d] * key[d] * (double)shape->scale;
            }
            sum += exp(score);
            for (int64_t d = 0; d < width; d++) {
                o[d] += exp(score) * value[d];
            }
        }
        for (int64_t d = 0; d < width; d++) {
            o[d] /= sum;
        }
        if (statistics != NULL) {
            statistics[i] = log(sum);
        }
    }
}

static inline void reference_cross_entropy(const struct rows_shape *shape, const double *logits, const double *targets,
                                           double *losses)
{
    for (int64_t row = 0; row < shape->rows; row++) {
        const double *x   = logits + row * shape->columns;
        double        sum = 0;
        for (int64_t i = 0; i < shape->valid_columns; i++) {
            sum += exp(x[i]);
        }
        losses[row] = log(sum) - x[(int64_t)targets[row]];
    }
}

#endif
