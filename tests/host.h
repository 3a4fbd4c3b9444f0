// SPDX-License-Identifier: MIT
// What the tests of the host backend share: operands, running one op, comparing its result.
#ifndef GSWBENCH_TESTS_HOST_H
#define GSWBENCH_TESTS_HOST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"
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
    status         opened = backend_open(&backend, "host", &(struct backend_setup){.threads = threads});
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

#endif
