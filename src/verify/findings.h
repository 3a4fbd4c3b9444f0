// SPDX-License-Identifier: MIT
// Errors in a rank's plan: their number, and the first as a message.
#pragma once

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

// Checks that warm-up can run an op alone, before a step has written its operands. Warm-up fills only indices,
// positions and counts. So every integer operand must declare which of these it holds, and filling one must not
// overwrite another.
void findings_check_warm(struct findings *findings, int32_t op);
