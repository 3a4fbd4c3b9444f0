// SPDX-License-Identifier: MIT
// Runs one op on the host backend.
#include "host.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

const enum format types[TYPES] = {FORMAT_F32, FORMAT_BF16};

double tolerance(enum format format)
{
    return format == FORMAT_F32 ? 2e-6 : 4.5e-3;
}

struct buffer make_output(enum format format, int64_t elements)
{
    struct buffer buffer = make_buffer(format, elements);
    for (int64_t i = 0; i <= elements; i++) {
        set(&buffer, i, NAN);
    }
    return buffer;
}

double *values_of(const struct buffer *buffer)
{
    double *values = malloc(sizeof(*values) * (size_t)(buffer->elements + 1));
    for (int64_t i = 0; i < buffer->elements; i++) {
        values[i] = get(buffer, i);
    }
    return values;
}

void run_op(const struct op *op, const struct buffer *buffers, int threads)
{
    struct backend backend;
    status         opened = backend_open(&backend, "host", &(struct backend_setup){.threads = threads});
    cr_assert_not(failed(&opened), "%s", opened.text);
    backend_reserve_scratch(&backend, backend.ops->scratch_bytes(&backend, op));
    backend.ops->run[op->kind](&backend, op, buffers);
    backend_close(&backend);
}

void expect_close(const struct buffer *result, const double *expected, double bound, const char *what)
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
