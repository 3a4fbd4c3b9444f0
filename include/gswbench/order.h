// SPDX-License-Identifier: MIT
// Which ops of a plan are certain to end before which others start, by the order of lanes and by waits.
#ifndef GSWBENCH_ORDER_H
#define GSWBENCH_ORDER_H

#include <stdint.h>

#include "gswbench/plan.h"

// [op * LANE_COUNT + lane]: how many of that lane's ops are certain to have ended before the op starts. The caller
// frees it. position: [op], the op's place in its own lane.
int32_t *order_clocks(const struct plan *plan, int32_t *position);

// Drops the waits that other waits and the order of lanes imply.
void order_prune(struct plan *plan, const int32_t *clocks, const int32_t *position);

// Puts every op on the compute lane, one after another in the order of the list, which keeps every wait.
void order_join_lanes(struct plan *plan);

#endif
