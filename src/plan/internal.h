// SPDX-License-Identifier: MIT
// Declares the last steps of plan building.
#pragma once

#include "gswbench/plan.h"

// Assigns arena offsets to activations (memory.c). clocks, position: from order_clocks.
void memory_place(struct plan *plan, const int32_t *clocks, const int32_t *position);
