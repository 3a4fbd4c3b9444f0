// SPDX-License-Identifier: MIT
// CUDA graphs: when a run captures its step, and whether replay is kept.
#ifndef GSWBENCH_RUN_GRAPHS_H
#define GSWBENCH_RUN_GRAPHS_H

#include "internal.h"

// tried: steps timed per mode, from step 1 on.
struct graphs_plan graphs_plan(enum graphs choice, bool can_capture, int nodes, int64_t warmup);

// seconds: median of an eager and of a replayed step.
bool graphs_is_captured_faster(const struct graphs_plan *plan, const struct result_step *steps, double seconds[2]);

// After a step: captures it when due; keeps the faster mode once all times are known. Collective.
status graphs_follow(struct steps *steps, int64_t index);
void   graphs_decide(struct steps *steps, int64_t index);

#endif
