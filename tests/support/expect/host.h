// SPDX-License-Identifier: MIT
// Shared by tests of the host backend: makes operands, runs an op, compares results and gradients, and makes router
// ops.
#pragma once

#include "buffers.h"

// Formats of elements that the tests use, and the number of threads where it does not matter.
enum { TYPES = 2, THREADS = 3 };
extern const enum format types[TYPES];

// Returns the tolerated error relative to the largest value, for fp32 or BF16 results (half an ulp is 2^-9).
double tolerance(enum format format);

// Allocates an output that is filled with NaN, so that unwritten elements show, with a guard element after it.
struct buffer make_output(enum format format, int64_t elements);

// Makes the operands of an op from one letter per slot: x for format x, - for none, and the letters of op_cases.h.
// Operands that the op reads are random with deviation 1, or zero for integers; other operands come from make_output.
// Also sets op->operand.
void make_slots(struct op *op, const char *slots, enum format x, struct buffer buffers[OP_OPERANDS]);

// Copies the values of a buffer into a new array.
double *values_of(const struct buffer *buffer);

// Runs an op on the host backend with scratch memory full of NaN, and checks the guards of buffers from make_output.
void run_op(const struct op *op, const struct buffer *buffers, int threads);
void expect_close(const struct buffer *result, const double *expected, double bound, const char *what);

// The inverse scale of an element of a GEMM operand [rows, depth], from the operand that stores the inverse scales.
typedef double inverse_scale_at(const struct buffer *scales, int32_t scaling, int64_t rows, int64_t depth, int64_t row,
                                int64_t k);

// Runs a GEMM of quantized operands, and compares it with factor times the sum of scaled products in double.
void expect_scaled_gemm(const struct op *op, const struct buffer buffers[OP_OPERANDS], double factor,
                        inverse_scale_at *inverse_scale);

// A forward pass as a function of one of its inputs, [inputs] -> [outputs]. The loss is the dot product of outputs and
// slopes.
struct function {
    void (*run)(const void *context, const double *in, double *out);
    const void   *context;
    int64_t       inputs, outputs;
    const double *slopes;
    double        bound;    // largest relative error; 0: tolerance of the format
};

// Compares a gradient with central differences of the forward pass in double precision. `added` is the earlier contents
// of the result, onto which the gradient was accumulated, or NULL.
void expect_gradient(const struct function *function, double *in, const struct buffer *result, const double *added,
                     const char *what);

struct buffer make_logits(const double *probabilities, int64_t elements);    // softmax has these probabilities
struct op     route_op(struct routing_shape shape);
void          make_route_outputs(struct buffer *buffers, const struct op *op);    // fills outputs with NaN or -7, which
                                                                                  // no result has
void expect_values(const struct buffer *buffer, const double *expected, const char *what);
#define VALUES(...) ((const double[]){__VA_ARGS__})
// Returns a routing shape with one sequence, all on this rank. Each expert has `taken` slots, and takes at most that
// many tokens.
struct routing_shape whole(int64_t rows, int64_t experts, int64_t top_k, int64_t taken);
