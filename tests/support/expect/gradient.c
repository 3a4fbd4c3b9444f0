// SPDX-License-Identifier: MIT
// Central differences, one input element at a time.
#include "gradient.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "host.h"

static double loss_of(const struct function *function, const double *in)
{
    double *out = malloc(sizeof(*out) * (size_t)function->outputs), loss = 0;
    function->run(function->context, in, out);
    for (int64_t i = 0; i < function->outputs; i++) {
        loss += out[i] * function->slopes[i];
    }
    free(out);
    return loss;
}

void expect_gradient(const struct function *function, double *in, const struct buffer *result, const double *added,
                     const char *what)
{
    const double step     = 1e-5;
    double      *expected = malloc(sizeof(*expected) * (size_t)function->inputs);
    cr_assert_eq(result->elements, function->inputs);
    for (int64_t i = 0; i < function->inputs; i++) {
        double value = in[i];
        in[i]        = value + step;
        double above = loss_of(function, in);
        in[i]        = value - step;
        double below = loss_of(function, in);
        in[i]        = value;
        expected[i]  = (above - below) / (2 * step) + (added != NULL ? added[i] : 0);
    }
    expect_close(result, expected, function->bound > 0 ? function->bound : tolerance(result->format), what);
    free(expected);
}
