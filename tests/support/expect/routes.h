// SPDX-License-Identifier: MIT
// Router ops on the host backend, and their expected outputs.
#ifndef GSWBENCH_TESTS_ROUTES_H
#define GSWBENCH_TESTS_ROUTES_H

#include "host.h"

struct buffer make_logits(const double *probabilities, int64_t elements);    // softmax has these probabilities
struct op     route_op(struct routing_shape shape);
void          make_route_outputs(struct buffer *buffers, const struct op *op);    // fills outputs with NaN or -7, which
                                                                                  // no result has
void expect_values(const struct buffer *buffer, const double *expected, const char *what);
// Shape with one sequence, all of whose rows are on this rank. Experts take and hold `taken` choices.
struct routing_shape whole(int64_t rows, int64_t experts, int64_t top_k, int64_t taken);

#endif
