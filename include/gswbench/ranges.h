// SPDX-License-Identifier: MIT
// NVTX ranges of a step for profilers, in the domain gswbench. On each issuing thread they nest: step, phase, layer,
// op.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// Outer ranges, on the thread that runs steps.
enum range { RANGE_STEP, RANGE_CAPTURE, RANGE_PROFILE, RANGE_COUNT };

struct ranges;

// Prepares all names and payloads, so that a step only passes pointers. Returns NULL if no profiler is attached or the
// build lacks NVTX. is_one_thread: one thread issues all ops in list order. Otherwise each stream has a thread; the
// compute stream's is the one that runs steps. The plan must outlive the ranges.
struct ranges *ranges_open(const struct plan *plan, bool is_one_thread);
void           ranges_close(struct ranges *ranges);

// No-ops if ranges is NULL. step: index of the step, or of the first step in the range.
void ranges_begin(struct ranges *ranges, enum range range, int64_t step);
void ranges_end(struct ranges *ranges);

// Called before and after an op on its issuing thread, with a struct ranges. They also open and close the phase and
// layer ranges, as the neighbouring ops on the thread require.
void ranges_begin_op(const void *ranges, const struct op *op);
void ranges_end_op(const void *ranges, const struct op *op);
