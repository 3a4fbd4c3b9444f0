// SPDX-License-Identifier: MIT
// A step as a profiler shows it: ranges of the NVTX domain gswbench, which nest on the thread that issues ops: step,
// phase, layer, op.
#ifndef GSWBENCH_RANGES_H
#define GSWBENCH_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// What is begun around ops, on the thread that runs steps.
enum range { RANGE_STEP, RANGE_CAPTURE, RANGE_PROFILE, RANGE_COUNT };

struct ranges;

// Makes all that is shown, once, so that a step only passes pointers. NULL: no profiler listens, or the build is
// without NVTX. is_one_thread: one thread issues all ops in the list's order; else each lane has its own, and that of
// compute is the thread that runs steps. The plan outlives the ranges.
struct ranges *ranges_open(const struct plan *plan, bool is_one_thread);
void           ranges_close(struct ranges *ranges);

// Both do nothing where ranges is NULL. step: the one that it is, or the first of those that it holds.
void ranges_begin(struct ranges *ranges, enum range range, int64_t step);
void ranges_end(struct ranges *ranges);

// Around an op, on the thread that issues it, of struct ranges. What an op begins or ends beside its own range, such as
// the range of its layer, follows from the ops before and after it on that thread.
void ranges_begin_op(const void *ranges, const struct op *op);
void ranges_end_op(const void *ranges, const struct op *op);

#endif
