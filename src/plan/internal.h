// SPDX-License-Identifier: MIT
// What an assembly does at its end.
#ifndef GSWBENCH_PLAN_INTERNAL_H
#define GSWBENCH_PLAN_INTERNAL_H

#include "gswbench/plan.h"

// memory.c: gives every activation its place in the arena. clocks, position: as order_clocks makes them.
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position);

#endif
