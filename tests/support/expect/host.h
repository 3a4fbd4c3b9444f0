// SPDX-License-Identifier: MIT
// What the tests of the host backend share: operands, running one op, comparing its result.
#ifndef GSWBENCH_TESTS_HOST_H
#define GSWBENCH_TESTS_HOST_H

#include "buffers.h"

// What the host computes in, and by how many threads where nothing depends on them.
enum { TYPES = 2, THREADS = 3 };
extern const enum format types[TYPES];

// Largest error relative to the largest value: of fp32 results, and of those stored in bf16 (half a unit is 2^-9).
double tolerance(enum format format);

// NaN everywhere, so that an element that is not written is seen; one more guards the end.
struct buffer make_output(enum format format, int64_t elements);

// Copies the values of a buffer into a new array of doubles; the caller frees.
double *values_of(const struct buffer *buffer);

// Runs one op on the host backend. Scratch is poisoned by use; buffers end with a guard where make_output made them.
void run_op(const struct op *op, const struct buffer *buffers, int threads);
void expect_close(const struct buffer *result, const double *expected, double bound, const char *what);

#endif
