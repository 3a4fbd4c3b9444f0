// SPDX-License-Identifier: MIT
// What the tests of the host backend share: operands, running one op, comparing its result.
#ifndef GSWBENCH_TESTS_HOST_H
#define GSWBENCH_TESTS_HOST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

// Largest error relative to the largest value: of fp32 results, and of those stored in bf16 (half a unit is 2^-9).
static inline double tolerance(enum format format)
{
    return format == FORMAT_F32 ? 2e-6 : 4.5e-3;
}

// NaN everywhere, so that an element that is not written is seen; one more guards the end.
static inline struct buffer make_output(enum format format, int64_t elements)
{
    struct buffer buffer = make_buffer(format, elements);
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

#endif
