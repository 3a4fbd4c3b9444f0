// SPDX-License-Identifier: MIT
// When a run captures its step, and whether it stays so.
#ifndef GSWBENCH_RUN_GRAPHS_H
#define GSWBENCH_RUN_GRAPHS_H

#include "internal.h"

// tried: so many steps are timed each way, from step 1 on, where that is to be found out.
struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup);

// By the steps of such a plan. seconds: a step that is issued op by op, and one that is replayed.
bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2]);

// After a step has run: captures it, when it is time; and when all ranks know its time: stays with the faster way.
// Collective.
status graphs_follow(struct steps *steps, int64_t index);
void   graphs_decide(struct steps *steps, int64_t index);

#endif
