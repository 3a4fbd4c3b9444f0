// SPDX-License-Identifier: MIT
// Changes to a plan's list of ops, and searches in it.
#ifndef GSWBENCH_TESTS_PLAN_EDIT_H
#define GSWBENCH_TESTS_PLAN_EDIT_H

#include "gswbench/plan.h"

// Moves an op to a later index, with the dependencies on it.
void move_op(struct plan *plan, int32_t from, int32_t to);
void remove_op(struct plan *plan, int32_t op);
// Inserts a second copy of the op.
void insert_copy(struct plan *plan, int32_t op);
void drop_wait(struct op *op, int32_t awaited);

int32_t        next_on_lane(const struct plan *plan, int32_t op);
int32_t        first_that_waits(const struct plan *plan, int32_t awaited);
int32_t        output_slot(const struct op *op);
struct tensor *output_of(struct plan *plan, int32_t op);

#endif
