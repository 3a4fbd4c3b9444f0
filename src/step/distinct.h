// SPDX-License-Identifier: MIT
// Which of a plan's transfers stand for the others that are alike.
#ifndef GSWBENCH_STEP_DISTINCT_H
#define GSWBENCH_STEP_DISTINCT_H

#include <stdbool.h>

#include "gswbench/plan.h"

// The first of each kind, size and format, on each group and lane: members of a group choose alike. is_chosen:
// [op_count]; returns how many.
int64_t distinct_choose(const struct plan *plan, bool *is_chosen);

#endif
