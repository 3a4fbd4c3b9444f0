// SPDX-License-Identifier: MIT
// 1F1B: a stage runs one forward pass per later stage, then alternates one forward and one backward pass.
#include "schedule_order.h"

static struct schedule_turn turn(const struct schedule_shape *shape, enum schedule_action action, int64_t index)
{
    (void)shape;
    return (struct schedule_turn){.action = action, .microbatch = index};
}

struct order one_forward_one_backward(const struct schedule_shape *shape, int64_t stage)
{
    return (struct order){.warmup = shape->stages - stage - 1, .count = shape->microbatches, .turn = turn};
}
