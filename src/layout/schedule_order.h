// SPDX-License-Identifier: MIT
// What a kind of schedule says of a stage; the rest is common to all.
#ifndef GSWBENCH_PIPELINE_INTERNAL_H
#define GSWBENCH_PIPELINE_INTERNAL_H

#include "gswbench/schedule.h"

// A stage runs warmup turns forward, then alternating forward and backward, then backward what is left. turn says
// which microbatch of which chunk is the index-th that way.
struct order {
    int64_t warmup, count;    // count: turns each way
    struct schedule_turn (*turn)(const struct schedule_shape *shape, enum schedule_action action, int64_t index);
};

struct order one_forward_one_backward(const struct schedule_shape *shape, int64_t stage);
struct order interleaved(const struct schedule_shape *shape, int64_t stage);

#endif
