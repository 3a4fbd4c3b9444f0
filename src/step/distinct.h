// SPDX-License-Identifier: MIT
// Selects one communication op of each distinct kind and size.
#ifndef GSWBENCH_STEP_DISTINCT_H
#define GSWBENCH_STEP_DISTINCT_H

#include <stdbool.h>

#include "gswbench/plan.h"

// Marks the first of each kind, size, format, peer and channel per group and stream. All members of a group choose the
// same ops. is_chosen: [op_count]. Returns the number of chosen ops.
int64_t distinct_choose(const struct plan *plan, bool *is_chosen);

#endif
