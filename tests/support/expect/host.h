// SPDX-License-Identifier: MIT
// Shared by host backend tests: operands, running one op, comparing its result.
#ifndef GSWBENCH_TESTS_HOST_H
#define GSWBENCH_TESTS_HOST_H

#include "buffers.h"

// Formats that the host computes in, and the number of threads for tests that do not depend on it.
enum { TYPES = 2, THREADS = 3 };
extern const enum format types[TYPES];

// Tolerated error relative to the largest value: for fp32 results, and for bf16 results (half an ulp is 2^-9).
double tolerance(enum format format);

// Allocates an output filled with NaN, which shows unwritten elements, plus a guard element at the end.
struct buffer make_output(enum format format, int64_t elements);

// Copies the values of a buffer into a new array, which the caller frees.
double *values_of(const struct buffer *buffer);

// Runs one op on the host backend with poisoned scratch, and checks the guards of buffers from make_output.
void run_op(const struct op *op, const struct buffer *buffers, int threads);
void expect_close(const struct buffer *result, const double *expected, double bound, const char *what);

#endif
