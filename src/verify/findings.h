// SPDX-License-Identifier: MIT
// What is wrong with a rank's plan: how much, and the first of it in words.
#ifndef GSWBENCH_VERIFY_FINDINGS_H
#define GSWBENCH_VERIFY_FINDINGS_H

#include "gswbench/plan.h"

struct findings {
    const struct plan *plan;
    int32_t            count;
    status             first;
};

// tensor, other: what else is named; -1: nothing.
void findings_add(struct findings *findings, int32_t op, int32_t tensor, const char *what, int32_t other);

// The op by itself: what it waits for, and that it has the operands of its kind, used and sized as that says.
void findings_check_op(struct findings *findings, int32_t op);

// warm.c: the op as warm-up runs it, on operands that no other op has written.
void findings_check_warm(struct findings *findings, int32_t op);

#endif
