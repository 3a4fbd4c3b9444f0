// SPDX-License-Identifier: MIT
// Makes the operands of a test case. Inputs are random, outputs are filled with NaN ("poisoned"), and guard elements
// follow each buffer to detect writes beyond its end.
#pragma once

#include "gswbench/backend.h"
#include "op_cases.h"

// Number of guard elements after each buffer.
enum { GUARDS = 64 };

// Returns the op of the case with its operands in the order of slots, and how it accesses them.
struct op complete_op(const struct op_case *test);

// Returns the format of an operand by its letter in a case (op_cases.h).
enum format format_of(char letter);

// Fills elements with NaN, or integers with an invalid index.
void    poison(const struct buffer *buffer, int64_t first, int64_t count);
int64_t guarded_bytes(const struct buffer *buffer);

// Makes the operands, which free_buffers releases. The same seed gives the same operands.
void make_operands(struct backend *host, const struct op_case *test, const struct op *op, uint64_t seed,
                   struct buffer buffers[OP_OPERANDS]);

void run_on_host(struct backend *host, const struct op *op, const struct buffer operands[OP_OPERANDS]);
