// SPDX-License-Identifier: MIT
// The happens-before relation of a plan's ops, from stream order and dependencies.
#pragma once

#include <stdint.h>

#include "gswbench/plan.h"

// Returns vector clocks: [op * STREAM_COUNT + stream] is the number of ops of that stream that have certainly ended
// before the op starts. position: [op], the index of the op in its stream. The caller frees the clocks.
int32_t *order_clocks(const struct plan *plan, int32_t *position);

// Drops dependencies that stream order and other dependencies imply.
void order_prune(struct plan *plan, const int32_t *clocks, const int32_t *position);

// Moves every op to the compute stream, in list order. This order satisfies all dependencies, so they are dropped.
void order_join_streams(struct plan *plan);
