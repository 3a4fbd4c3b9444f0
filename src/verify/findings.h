// SPDX-License-Identifier: MIT
// Errors in a rank's plan: their number, and the first as a message.
#ifndef GSWBENCH_VERIFY_FINDINGS_H
#define GSWBENCH_VERIFY_FINDINGS_H

#include "gswbench/plan.h"

struct findings {
    const struct plan *plan;
    int32_t            count;
    status             first;
};

// tensor, other: also named in the message; -1: none.
void findings_add(struct findings *findings, int32_t op, int32_t tensor, const char *what, int32_t other);

// Checks one op by itself: its dependencies, and the presence, access and size of its operands.
void findings_check_op(struct findings *findings, int32_t op);

// warm.c: checks that warm-up can run the op before other ops have written its operands.
void findings_check_warm(struct findings *findings, int32_t op);

#endif
