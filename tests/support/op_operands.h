// SPDX-License-Identifier: MIT
// Makes the operands of an op's test case: inputs are random, outputs are poisoned (filled with NaN), and guard
// elements follow each buffer, to find writes beyond its end.
#pragma once

#include "gswbench/backend.h"
#include "op_cases.h"

// Guard elements after each buffer.
enum { GUARDS = 64 };

// Returns the case's op with its operands in slot order, and their access.
struct op complete_op(const struct op_case *test);

// Format of an operand by its letter in a case (op_cases.c).
enum format format_of(char letter);

// Fills elements with NaN, or with an invalid index.
void    poison(const struct buffer *buffer, int64_t first, int64_t count);
int64_t guarded_bytes(const struct buffer *buffer);

// Release with free_buffers. The same seed gives the same operands.
void make_operands(struct backend *host, const struct op_case *test, const struct op *op, uint64_t seed,
                   struct buffer buffers[OP_OPERANDS]);

void run_on_host(struct backend *host, const struct op *op, const struct buffer operands[OP_OPERANDS]);
