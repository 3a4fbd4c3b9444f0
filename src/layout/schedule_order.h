// SPDX-License-Identifier: MIT
// The stage-dependent part of a pipeline schedule.
#ifndef GSWBENCH_PIPELINE_INTERNAL_H
#define GSWBENCH_PIPELINE_INTERNAL_H

#include "gswbench/schedule.h"

// A stage runs warmup forward passes, then alternates forward and backward, then runs the remaining backward passes.
// turn returns microbatch and chunk of the index-th action of a direction.
struct order {
    int64_t warmup, count;    // count: actions per direction
    struct schedule_turn (*turn)(const struct schedule_shape *shape, enum schedule_action action, int64_t index);
};

struct order one_forward_one_backward(const struct schedule_shape *shape, int64_t stage);
struct order interleaved(const struct schedule_shape *shape, int64_t stage);

#endif
