// SPDX-License-Identifier: MIT
// Compares a gradient with central differences of the forward pass in double.
#ifndef GSWBENCH_TESTS_GRADIENT_H
#define GSWBENCH_TESTS_GRADIENT_H

#include "buffers.h"

// A forward pass as a function of one of its inputs, [inputs] -> [outputs]. The loss is the dot product of outputs and
// slopes.
struct function {
    void (*run)(const void *context, const double *in, double *out);
    const void   *context;
    int64_t       inputs, outputs;
    const double *slopes;
    double        bound;    // largest relative error; 0: tolerance of the result's format
};

// added: previous contents that the result accumulates onto, or NULL.
void expect_gradient(const struct function *function, double *in, const struct buffer *result, const double *added,
                     const char *what);

#endif
