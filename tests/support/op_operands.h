// SPDX-License-Identifier: MIT
// Operands of an op's case: drawn where the op reads, poisoned where it writes, and with guards behind their ends.
#ifndef GSWBENCH_TESTS_OP_OPERANDS_H
#define GSWBENCH_TESTS_OP_OPERANDS_H

#include "gswbench/backend.h"
#include "op_cases.h"

// Elements behind each buffer that nobody may write.
enum { GUARDS = 64 };

// The case's op with its operands, each in the slot of its number, and how it accesses them.
struct op complete_op(const struct op_case *test);

// A NaN in every element; no index that means something.
void    poison(const struct buffer *buffer, int64_t first, int64_t count);
int64_t guarded_bytes(const struct buffer *buffer);

// Released by free_buffers. The same seed gives the same operands.
void make_operands(struct backend *host, const struct op_case *test, const struct op *op, uint64_t seed,
                   struct buffer buffers[OP_OPERANDS]);

void run_on_host(struct backend *host, const struct op *op, const struct buffer operands[OP_OPERANDS]);

#endif
