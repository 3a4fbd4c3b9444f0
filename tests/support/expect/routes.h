// SPDX-License-Identifier: MIT
// Ops of a router on the host backend, and what they have to write.
#ifndef GSWBENCH_TESTS_ROUTES_H
#define GSWBENCH_TESTS_ROUTES_H

#include "host.h"

struct buffer make_logits(const double *probabilities, int64_t elements);    // whose softmax is the given probabilities
struct op     route_op(struct routing_shape shape);
void          make_route_outputs(struct buffer *buffers, const struct op *op);    // hold what no result is: NaN, or -7
void          expect_values(const struct buffer *buffer, const double *expected, const char *what);
// One sequence, all of whose rows are here, and experts that take and hold as many choices as said.
struct routing_shape whole(int64_t rows, int64_t experts, int64_t top_k, int64_t taken);

#endif
